"""Tables of the page: sortable by their headings, readable by ear."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from math import isinf

from escala.analyse.language import say
from escala.report.column import Column
from escala.report.html import words
from escala.report.html.element import Html, element, joined, name
from escala.report.html.keys import sort_key
from escala.report.section import Section
from escala.report.table import Table

_LAST = "1e308"
"""The key of what never came: JavaScript reads no `inf`."""


def table_html(table: Table, marks: Collection[str]) -> Html:
    """One block of comparable rows with what is to be said about it; `marks` are the doubts' letters."""
    parts = [element("h3", name(table.heading))] if table.heading else []
    parts += [element("p", fact, class_="facts") for fact in table.facts]
    parts.append(_grid(table.columns, table.heading or say(words.TABLE), table.winner, marks))
    parts += [element("p", note, class_="facts") for note in table.notes]
    if table.trouble:
        items = (element("li", name(row), ": ", name(what)) for row, what in table.trouble)
        parts += [element("h4", say(words.NOT_DONE)), element("ul", *items)]
    return joined(parts)


def section_html(section: Section) -> Html:
    """A heading, a table, and remarks."""
    parts = [element("h3", name(section.heading)), _grid(section.columns, section.heading, None, ())]
    if section.remarks:
        parts.append(element("ul", *(element("li", name(of), ": ", name(text)) for of, text in section.remarks)))
    parts += [element("p", line, class_="facts") for line in section.lines]
    return joined(parts)


def _grid(columns: Sequence[Column], title: str, winner: int | None, marks: Collection[str]) -> Html:
    if not any(column.cells for column in columns):
        return Html("")
    head = element("tr", *(_heading(column) for column in columns))
    body = element("tbody", *_rows(columns, winner, marks))
    table = element("table", element("thead", head), body)
    label = say(words.TABLE_OF, name=title)
    return element("div", table, class_="wide", role="region", aria_label=label, tabindex="0")


def _heading(column: Column) -> Html:
    title = column.title.replace("\n", " ")
    button = element("button", title, type_="button", title=say(words.SORT_BY, column=title))
    return element("th", button, scope="col", class_="text" if column.text else None)


def _rows(columns: Sequence[Column], winner: int | None, marks: Collection[str]) -> Iterator[Html]:
    for place, cells in enumerate(zip(*(column.cells for column in columns), strict=True)):
        made = [
            _cell(column, cell, marks, first=column is columns[0])
            for column, cell in zip(columns, cells, strict=True)
        ]
        yield element("tr", *made, class_="winner" if place == winner else None)


def _cell(column: Column, cell: str, marks: Collection[str], *, first: bool) -> Html:
    letters = cell.split()
    if marks and column is not None and column.title == say("doubts") and set(letters) <= set(marks):
        links = [element("a", mark, href=f"#doubt-{mark}") for mark in letters]
        return element("td", joined(links, " "), class_="text")
    if first:
        return element("th", name(cell), scope="row", class_="text")
    if column.text:
        return element("td", name(cell), class_="text")
    key = sort_key(cell)
    told = None if key is None else _LAST if isinf(key) else f"{key:.12g}"
    return element("td", cell, data_key=told)
