"""What `escala studies` shows: the shipped experiments and what each is about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from escala.report.screen import columns_of, drawn


def studies_text(found: Sequence[tuple[str, str, str]], *, width: int | None = None, colour: bool = False) -> str:
    """Name, title and what it is about, of each study; `width` in columns; left out, the terminal's."""
    return drawn(_parts(found), columns_of(width), colour=colour)


def _parts(found: Sequence[tuple[str, str, str]]) -> Iterator[RenderableType]:
    for place, (name, title, about) in enumerate(found):
        if place:
            yield Text("")
        yield Text.assemble((name, "bold"), f"  {title}")
        yield Padding(Text(" ".join(about.split()), style="dim"), (0, 0, 0, 4))
