"""What tables are made of."""

from __future__ import annotations

from msgspec import Struct


class Column(Struct, frozen=True):
    """One column; `title` may have several lines. `text` columns begin at the left, figures end at the right."""

    title: str
    cells: tuple[str, ...]
    text: bool = False
