"""Columns that tell of scores beside the score itself: what of it was lost, and how soon a target was reached."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from escala.analyse import parity
from escala.analyse.language import marked, say
from escala.analyse.plain import LONGEST_NAME, plain
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import NEVER, interval_text, speedup_text, target_text
from escala.report.column import Column

LOST = marked("score lost")
TIME_TO_SCORE = marked("time to\nscore, s")


def to_score_columns(rows: Sequence[Summary]) -> list[Column]:
    """How soon the rows reached their target and how many runs did; none where no row had one."""
    if all(row.target is None for row in rows):
        return []
    targets = list(dict.fromkeys(target_text(row) for row in rows if row.target is not None))
    columns = [] if len(targets) == 1 else [Column(say("target"), tuple(target_text(row) for row in rows))]
    return [
        *columns,
        Column(say("reached"), tuple(_reached(row) for row in rows)),
        Column(say("epochs\nto score"), tuple(_epochs(row.to_score_epochs) for row in rows)),
        Column(say(TIME_TO_SCORE), tuple(_text(row.to_score_s) for row in rows)),
        Column(say("speed-up,\nto score"), tuple(_speedup(row) for row in rows)),
    ]


def lost_columns(rows: Sequence[Summary]) -> list[Column]:
    """What each row lost of the baseline's score, below 0: gained; none where no two scores can be compared."""
    known = [row for row in rows if row.score_lost is not None]
    if not known:
        return []
    units = {parity.unit_text(row) for row in known}
    unit = units.pop() if len(units) == 1 else None
    title = f"{say(LOST)},\n{unit}" if unit else say(LOST)
    return [Column(title, tuple(_lost(row, with_unit=unit is None) for row in rows))]


def targets_text(rows: Sequence[Summary]) -> str:
    """`until accuracy 0.9`, where all rows have the same target."""
    targets = {target_text(row) for row in rows}
    if len(targets) > 1 or rows[0].target is None:
        return ""
    return say("until {target}", target=plain(targets.pop(), LONGEST_NAME))


def _reached(row: Summary) -> str:
    return say("{count} of {whole}", count=row.reached, whole=row.tried) if row.tried else ""


def _epochs(found: Interval | None) -> str:
    # Whole numbers, of which an interval with decimals would pretend to more.
    if found is None:
        return ""
    ends = [found.median] if len(found.values) < 2 or found.low == inf else [found.median, found.low, found.high]
    median, *others = (say(NEVER) if value == inf else f"{value:g}" for value in ends)
    return f"{median} [{', '.join(others)}]" if others else median


def _text(found: Interval | None) -> str:
    return interval_text(found) if found else ""


def _speedup(row: Summary) -> str:
    return speedup_text(row.speedup_to_score) if row.speedup_to_score else ""


def _lost(row: Summary, *, with_unit: bool) -> str:
    found = parity.in_unit(row)
    if found is None:
        return ""
    farthest = max(abs(found.median), abs(found.low), abs(found.high))
    decimals = max(0, 3 - len(f"{farthest:.0f}")) if parity.unit(row) else 4
    ends = [found.median] if len(found.values) < 2 else [found.median, found.low, found.high]
    median, *others = (f"{round(value, decimals) + 0.0:+.{decimals}f}" for value in ends)
    text = f"{median} [{', '.join(others)}]" if others else median
    return f"{text} {parity.unit_text(row)}".rstrip() if with_unit else text
