"""A report for a terminal: the verdict in words, then the tables, then the doubts with what to do about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from escala.analyse.annex import NOTHING, Annex
from escala.analyse.language import marked, say
from escala.analyse.row import Summary
from escala.analyse.verdict import Verdict
from escala.report.column import Column
from escala.report.energy_columns import energy_sections
from escala.report.screen import columns_of, drawn, notes
from escala.report.section import Section
from escala.report.sections import sections
from escala.report.table import Table, legend, tables
from escala.report.time_shares import time_share_sections

_GAP = 2
_TITLES = (marked("strategy"), marked("row"), marked("doubts"), marked("verdict"), marked("factor"))


def write(
    summaries: Sequence[Summary],
    verdict: Verdict,
    annex: Annex = NOTHING,
    *,
    width: int | None = None,
    colour: bool = False,
) -> str:
    """The report as text of at most `width` columns; left out, the terminal's width. `colour` adds ANSI colours.

    A table that is wider goes on below itself, its first and last column repeated.
    """
    width = columns_of(width)
    return drawn(_parts(summaries, verdict, annex, width), width, colour=colour)


def _parts(summaries: Sequence[Summary], verdict: Verdict, annex: Annex, width: int) -> Iterator[RenderableType]:
    found = tables(summaries, verdict)
    if not found:
        yield Text(verdict.sentences[0])
        return
    yield Text(say("Verdict"), style="bold")
    for standing in verdict.standings:
        if standing.heading:
            yield Text(standing.heading)
        yield notes([("-", sentence) for sentence in standing.sentences])
    for table in found:
        yield from _block(table, width)
    yield Text("")
    yield Text(legend(found), style="dim")
    for section in (*energy_sections(summaries), *time_share_sections(summaries), *sections(annex)):
        yield from section_parts(section, width)
    if verdict.cautions:
        yield Text("")
        yield Text(say("Doubts"), style="bold")
        yield notes([(c.mark, f"{say(c.doubt)} ({c.where}): {c.advice}") for c in verdict.cautions])


def _block(table: Table, width: int) -> Iterator[RenderableType]:
    yield Text("")
    if table.heading:
        yield Text(table.heading, style="bold")
    for fact in table.facts:
        yield Text(fact, style="dim")
    for page in _pages(table.columns, width):
        yield _grid(page, table.winner)
    if table.notes:
        yield Text("")
    for note in table.notes:
        yield Text(note, style="dim")
    if table.trouble:
        yield Text("")
        yield Text(say("Not done"), style="bold")
        yield notes(table.trouble)


def section_parts(section: Section, width: int) -> Iterator[RenderableType]:
    """A section as things to draw, its table cut where it is wider than `width` columns."""
    yield Text("")
    yield Text(section.heading, style="bold")
    for page in _pages(section.columns, width):
        yield _grid(page, None)
    if section.remarks:
        yield Text("")
        yield notes([("-", f"{name}: {text}") for name, text in section.remarks])
    if section.lines:
        yield Text("")
    for line in section.lines:
        yield Text(line, style="dim")


def _pages(columns: Sequence[Column], width: int) -> Iterable[list[Column]]:
    """The columns cut into tables that fit, each with the names before and the doubts after its figures."""
    titles = [say(title) for title in _TITLES]
    outer = [column for column in columns if column.title in titles]
    inner = [column for column in columns if column.title not in titles]
    room = width - sum(_width(column) for column in outer)
    pages: list[list[Column]] = [[]]
    used = 0
    for column in inner:
        if pages[-1] and used + _width(column) > room:
            pages.append([])
            used = 0
        pages[-1].append(column)
        used += _width(column)
    return [[*outer[:1], *page, *outer[1:]] for page in pages if page]


def _width(column: Column) -> int:
    return _GAP + max(cell_len(line) for line in (*column.title.split("\n"), *column.cells))


def _grid(columns: Sequence[Column], winner: int | None) -> RenderableType:
    grid = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        side: Literal["left", "right"] = "left" if column.text else "right"
        grid.add_column(Text(column.title, justify=side), justify=side, vertical="bottom", overflow="fold")
    for place, row in enumerate(zip(*(column.cells for column in columns), strict=True)):
        style = "bold green" if place == winner else ""
        grid.add_row(*(Text(cell, style=style) for cell in row))
    return Padding(grid, (1, 0, 0, 0))
