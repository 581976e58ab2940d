"""A report as GitHub Markdown: the verdict as a list, a table a block, the doubts as a list."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from escala.analyse.annex import NOTHING, Annex
from escala.analyse.language import say
from escala.analyse.row import Summary
from escala.analyse.verdict import Verdict
from escala.report.column import Column
from escala.report.energy_columns import energy_sections
from escala.report.section import Section
from escala.report.sections import sections
from escala.report.table import Table, legend, tables
from escala.report.time_shares import time_share_sections

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"})
# An interval such as [1.20, 1.31] opens nothing and stays readable in the source.
_MARKUP = re.compile(r"[\\`*_~$]|\[(?![+-]?\d[-+\d.,\s]*\](?![(\[:]))")
# Bare addresses become links by themselves.
_LINKS = re.compile(r"(?i)(?<=:)//|(?<=www)\.|@")
# What would begin a heading, a list in a list or a rule where a line begins.
_LINE_MARK = re.compile(r"^(\d*)([-+=#.)])")


def write(summaries: Sequence[Summary], verdict: Verdict, annex: Annex = NOTHING) -> str:
    """The whole report; every name in it shows as it is spelled."""
    below = (*energy_sections(summaries), *time_share_sections(summaries), *sections(annex))
    return "\n".join(_lines(tables(summaries, verdict), verdict, below)) + "\n"


def escaped(text: str) -> str:
    """`text`, which is one plain line, so that Markdown shows it and obeys none of it, within a line."""
    found = _MARKUP.sub(r"\\\g<0>", text.translate(_ENTITIES))
    return _LINKS.sub(lambda sign: {"//": "/\\/", "@": "\\@"}.get(sign[0], "\\."), found)


def line(text: str) -> str:
    """The same where `text` begins a line or an item of a list."""
    return _LINE_MARK.sub(r"\1\\\2", escaped(text))


def _lines(found: Sequence[Table], verdict: Verdict, below: Sequence[Section]) -> Iterator[str]:
    if not found:
        yield line(verdict.sentences[0])
        return
    for standing in verdict.standings:
        if standing.heading:
            yield from (f"**{escaped(standing.heading)}**", "")
        yield from (f"- {line(sentence)}" for sentence in standing.sentences)
        yield ""
    for table in found:
        yield from _table(table)
    yield line(legend(found))
    for section in below:
        yield ""
        yield from section_lines(section)
    if verdict.cautions:
        yield ""
        for caution in verdict.cautions:
            where = escaped(caution.where)
            yield f"- **{caution.mark}: {say(caution.doubt)}** ({where}): {escaped(caution.advice)}"


def _table(table: Table) -> Iterator[str]:
    if table.heading:
        yield from (f"### {line(table.heading)}", "")
    yield from (line("; ".join(table.facts)), "")
    yield from _grid(table.columns)
    for note in table.notes:
        yield from (line(note), "")
    if table.trouble:
        yield from (f"{say('Not done')}:", "")
        yield from (f"- {line(name)}: {escaped(what)}" for name, what in table.trouble)
        yield ""


def section_lines(section: Section) -> Iterator[str]:
    """A section as lines of Markdown."""
    yield from (f"### {line(section.heading)}", "")
    yield from _grid(section.columns)
    yield from (f"- {line(name)}: {escaped(text)}" for name, text in section.remarks)
    if section.remarks:
        yield ""
    for text in section.lines:
        yield from (line(text), "")


def _grid(columns: Sequence[Column]) -> Iterator[str]:
    if any(column.cells for column in columns):
        yield _row([column.title.replace("\n", " ") for column in columns])
        yield _row([":--" if column.text else "--:" for column in columns], escape=False)
        for cells in zip(*(column.cells for column in columns), strict=True):
            yield _row(list(cells))
        yield ""


def _row(cells: Sequence[str], *, escape: bool = True) -> str:
    return f"| {' | '.join(escaped(cell) if escape else cell for cell in cells)} |"
