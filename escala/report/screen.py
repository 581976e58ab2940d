"""Rich things drawn to text at a given width."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from io import StringIO

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

UNKNOWN_WIDTH = 120
"""Columns where nobody says how many there are: no terminal, no `COLUMNS`."""


def columns_of(width: int | None) -> int:
    """`width`, or the terminal's where it is left out."""
    return width or shutil.get_terminal_size((UNKNOWN_WIDTH, 0)).columns


def drawn(parts: Iterable[RenderableType], width: int, *, colour: bool = False) -> str:
    """Everything below each other, no line longer than `width`, no blanks at line ends."""
    text = StringIO()
    console = Console(
        file=text,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        legacy_windows=False,
        markup=False,
        highlight=False,
        emoji=False,
    )
    for part in parts:
        console.print(part)
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def notes(pairs: Iterable[tuple[str, str]]) -> RenderableType:
    """A list: a mark or a name, and text that wraps beside it."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(justify="left", overflow="fold")
    grid.add_column(justify="left", overflow="fold", ratio=1)
    for name, text in pairs:
        grid.add_row(Text(name), Text(text))
    return grid
