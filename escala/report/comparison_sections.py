"""A comparison of two campaigns as sections, once for every writer that shows it to a person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from escala.analyse.comparison import Comparison, change_name
from escala.analyse.plain import LONGEST_NAME, plain
from escala.analyse.row import Interval
from escala.analyse.row_change import RowChange
from escala.analyse.wording import number, percent, size, speedup_text
from escala.report.column import Column
from escala.report.section import Section
from escala.terms.doubts import ADVICE

NAMED = 3
"""Rows that a remark names, before it only counts."""

HEADING = "B against A"
LEGEND = (
    "A and B hold medians over runs. The ratio is B's time over A's: above 1, B is slower; in brackets its 95 % "
    "interval over runs, or, of fewer than 5 runs, the range of all single ratios. The same: the whole interval lies "
    "within {margin} of 1. Slower or faster: it lies on one side of 1, and each side has 3 runs or more."
)


def comparison_sections(found: Comparison) -> tuple[Section, ...]:
    """The table of changes with what is to be said of single rows, then what only one campaign has, then doubts."""
    parts = [_changes(found)]
    alone = [("only in A", name) for name in found.only_before] + [("only in B", name) for name in found.only_after]
    alone += [("no times in either", name) for name in found.untimed]
    if alone:
        parts.append(Section("Not compared", (), tuple(alone)))
    if found.around:
        parts.append(Section("What else differs, A -> B", (), tuple(_split(one) for one in found.around)))
    if doubts := tuple(_doubts(found.rows)):
        parts.append(Section("Doubts", (), doubts))
    return tuple(parts)


def _changes(found: Comparison) -> Section:
    rows = found.rows
    columns = (
        Column("row", tuple(map(change_name, rows)), text=True),
        Column("time", tuple(row.measure or "" for row in rows)),
        Column("A", tuple(_median(row.before) for row in rows)),
        Column("B", tuple(_median(row.after) for row in rows)),
        Column("runs", tuple(map(_runs, rows))),
        Column("B / A", tuple(speedup_text(row.time_ratio) if row.time_ratio else "" for row in rows)),
        Column("score A", tuple(_median(row.score_before, 4) for row in rows)),
        Column("score B", tuple(_median(row.score_after, 4) for row in rows)),
        Column("memory A", tuple(size(row.memory_before) if row.memory_before else "" for row in rows)),
        Column("memory B", tuple(size(row.memory_after) if row.memory_after else "" for row in rows)),
        Column("energy\nB / A", tuple(speedup_text(row.energy_ratio) if row.energy_ratio else "" for row in rows)),
        Column("verdict", tuple(map(_verdict, rows)), text=True),
    )
    legend = LEGEND.format(margin=percent(found.same_within))
    return Section(
        HEADING, tuple(column for column in columns if any(column.cells)), tuple(_remarks(rows)), (legend,)
    )


def _remarks(rows: Sequence[RowChange]) -> Iterator[tuple[str, str]]:
    """Rows of which the same is to be said, on one line."""
    alike: dict[str, list[str]] = {}
    for row in rows:
        for text in (row.reason, *row.not_alike, *row.differs):
            alike.setdefault(text, []).append(change_name(row))
    yield from ((_named(names), text) for text, names in alike.items() if text)


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return f"{'; '.join(names[:NAMED])}{more}"


def _verdict(row: RowChange) -> str:
    return f"{row.verdict}, worse score" if row.worse_score else row.verdict


def _runs(row: RowChange) -> str:
    before, after = (len(one.values) if one else 0 for one in (row.before, row.after))
    return f"{before}" if before == after else f"{before}, {after}"


def _median(found: Interval | None, digits: int = 3) -> str:
    return number(found.median, digits) if found else ""


def _split(text: str) -> tuple[str, str]:
    name, _, rest = text.partition(": ")
    return name, rest


def _doubts(rows: Sequence[RowChange]) -> list[tuple[str, str]]:
    told: list[tuple[str, str]] = []
    for doubt, advice in ADVICE.items():
        found = [
            f"{plain(label, LONGEST_NAME)} in {side}"
            for row in rows
            for side, label, doubts in (
                ("A", row.label, row.doubts_before),
                ("B", row.other_label or row.label, row.doubts_after),
            )
            if doubt in doubts
        ]
        where = list(dict.fromkeys(found))
        if where:
            told.append((doubt, f"{_named(where)}: {advice}"))
    return told
