"""A comparison of two campaigns as text: for a terminal, for a pull request, for a spreadsheet and for programs."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from escala.analyse.comparison import Comparison
from escala.analyse.row_change import RowChange
from escala.report import csv_text, json_text, markdown, terminal
from escala.report.comparison_sections import comparison_sections
from escala.report.flat import Value, three
from escala.report.screen import columns_of, drawn, notes

_HEADER = (
    *("row", "row_in_b", "point", "verdict", "reason", "measure"),
    *("a", "a_low", "a_high", "b", "b_low", "b_high", "time_ratio", "time_ratio_low", "time_ratio_high"),
    *("score_name", "score_a", "score_b", "score_lost", "score_lost_low", "score_lost_high", "worse_score"),
    *(
        "memory_a",
        "memory_b",
        "energy_ratio",
        "energy_ratio_low",
        "energy_ratio_high",
        "broken",
        "not_alike",
        "differs",
    ),
)


def terminal_text(found: Comparison, width: int | None = None) -> str:
    """The verdict in words, then the tables, no line longer than `width` columns; left out, the terminal's width."""
    width = columns_of(width)
    parts = [
        notes([("A:", found.before), ("B:", found.after)]),
        Text(""),
        Text("Verdict", style="bold"),
        notes([("-", sentence) for sentence in found.sentences]),
    ]
    for section in comparison_sections(found):
        parts += terminal.section_parts(section, width)
    return drawn(parts, width)


def markdown_text(found: Comparison) -> str:
    """The same as GitHub Markdown; every name in it shows as it is spelled."""
    told = [f"A: {markdown.escaped(found.before)}  ", f"B: {markdown.escaped(found.after)}", ""]
    told += [f"- {markdown.line(sentence)}" for sentence in found.sentences]
    for section in comparison_sections(found):
        told += ["", *markdown.section_lines(section)]
    return "\n".join(told).rstrip() + "\n"


def csv(found: Comparison) -> str:
    """One line a row in both campaigns, figures not rounded."""
    return csv_text.lines([_HEADER, *map(_cells, found.rows)])


def _cells(row: RowChange) -> list[Value]:
    scores = (one.median if one else None for one in (row.score_before, row.score_after))
    return [
        *(row.label, row.other_label, json_text.compact(row.point) if row.point else None),
        *(row.verdict, row.reason or None, row.measure),
        *(*three(row.before), *three(row.after), *three(row.time_ratio)),
        *(row.score_name, *scores, *three(row.score_lost), row.worse_score),
        *(row.memory_before, row.memory_after, *three(row.energy_ratio)),
        *(row.broken, "; ".join(row.not_alike) or None, "; ".join(row.differs) or None),
    ]


def json(found: Comparison) -> str:
    """Everything in the comparison under its field names, with a schema number."""
    return json_text.pretty({"schema": json_text.SCHEMA, "comparison": found})


COMPARISON_WRITERS: dict[str, Callable[[Comparison], str]] = {
    "terminal": terminal_text,
    "markdown": markdown_text,
    "csv": csv,
    "json": json,
}
