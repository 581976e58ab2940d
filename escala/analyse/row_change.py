"""What became of one row from one campaign to another."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from escala.analyse import energy_rows, parity
from escala.analyse.bootstrap import inverse, ratio
from escala.analyse.facets import DATA
from escala.analyse.pairing import Pair, Side
from escala.analyse.plain import LONGEST_REASON, plain
from escala.analyse.row import Interval, Summary
from escala.analyse.sentences import ENOUGH_TO_WIN
from escala.analyse.to_score import mostly_never, same_target
from escala.analyse.wording import outcomes_text
from escala.terms.doubts import Doubt

Word = Literal["faster", "slower", "same", "cannot tell"]
Measure = Literal["total s", "s/sample", "s to score"]

SAME_WITHIN = 0.02
"""A change of less than this, as a share of the time, is none."""


class RowChange(Struct, frozen=True, kw_only=True):
    """One row in both campaigns. Field names are public: add, never rename.

    `before` and `after` are seconds, of what `measure` says, by run; None where there are none. `time_ratio` is after
    over before: above 1 the row became slower. `reason` says why the verdict is `cannot tell`. `not_alike` names what
    must be alike and is not, `differs` what else does. `score_lost` is how much worse the score became, as in
    `Summary.score_lost`; `worse_score`: beyond the tolerance and no chance. `broken`: it had times before, and was
    tried and has none after. Memory is the highest peak of any device in bytes.
    """

    label: str
    other_label: str | None
    point: dict[str, Any]
    verdict: Word
    reason: str
    measure: Measure | None
    before: Interval | None
    after: Interval | None
    time_ratio: Interval | None
    not_alike: tuple[str, ...]
    differs: tuple[str, ...]
    score_name: str | None
    score_before: Interval | None
    score_after: Interval | None
    score_lost: Interval | None
    worse_score: bool
    memory_before: int | None
    memory_after: int | None
    energy_ratio: Interval | None
    broken: bool
    doubts_before: dict[Doubt, str]
    doubts_after: dict[Doubt, str]


def change_of(pair: Pair, same_within: float = SAME_WITHIN) -> RowChange:
    """How the row changed; `same_within` is a share of the time. Its tolerance of scores is that of the row after."""
    before, after = pair.before.row, pair.after.row
    measure, old, new = _times(before, after)
    times = ratio(new.values, old.values, never=True) if old and new else None
    judged = replace(after, score_lost=parity.lost(after, before))
    return RowChange(
        label=before.label,
        other_label=after.label if after.label != before.label else None,
        point=before.point,
        verdict=verdict_of(times, min(before.runs, after.runs), same_within),
        reason=_why_not(before, after, times),
        measure=measure,
        before=old,
        after=new,
        time_ratio=times,
        not_alike=tuple(_differences(pair, "must")),
        differs=tuple(_differences(pair, "may")),
        score_name=after.score_name,
        score_before=before.score,
        score_after=after.score,
        score_lost=judged.score_lost,
        worse_score=parity.tested(after, before) and parity.beyond(judged) and parity.shown_worse(judged),
        memory_before=before.peak_bytes,
        memory_after=after.peak_bytes,
        energy_ratio=energy_rows.against(after, before)["energy_ratio"],
        broken=before.runs > 0 and after.runs == 0,
        doubts_before=before.doubts,
        doubts_after=after.doubts,
    )


def verdict_of(times: Interval | None, runs: int, same_within: float) -> Word:
    """What a ratio of times means, of which the smaller side has `runs`.

    The same: the whole interval lies within the margin. Of fewer runs than a winner needs nothing can be told.
    """
    if times is None or runs < ENOUGH_TO_WIN:
        return "cannot tell"
    if 1 / (1 + same_within) <= times.low and times.high <= 1 + same_within:
        return "same"
    if times.low > 1:
        return "slower"
    return "faster" if times.high < 1 else "cannot tell"


def around(side: Side, other: Side) -> Iterator[tuple[str, str, str]]:
    """What differs of software and machine: its name, and the value on either side."""
    ours, theirs = side.facets.around, other.facets.around
    for name in dict.fromkeys([*ours, *theirs]):
        if ours.get(name) != theirs.get(name):
            yield name, ours.get(name, _NONE), theirs.get(name, _NONE)


_NONE = "none"


def _times(before: Summary, after: Summary) -> tuple[Measure | None, Interval | None, Interval | None]:
    """The seconds that say how fast both rows are."""
    if before.target is not None or after.target is not None:
        known = same_target(before, after) and not (mostly_never(before) or mostly_never(after))
        return _both("s to score", before.to_score_s, after.to_score_s) if known else (None, None, None)
    if before.total_s and after.total_s and before.samples == after.samples:
        return "total s", before.total_s, after.total_s
    # Of a budget of steps, or of two budgets, the rate speaks and not the time.
    rates = (before.samples_per_second, after.samples_per_second)
    return _both("s/sample", *(inverse(rate) if rate else None for rate in rates))


def _both(
    measure: Measure, old: Interval | None, new: Interval | None
) -> tuple[Measure | None, Interval | None, Interval | None]:
    if not old or not new or not isfinite(old.median) or not isfinite(new.median):
        return None, None, None
    return measure, old, new


def _why_not(before: Summary, after: Summary, times: Interval | None) -> str:
    for name, row in (("A", before), ("B", after)):
        if not row.runs:
            return f"no times in {name}: {outcomes_text(row)}"
    if times is None:
        return "the two have no time in common"
    if min(before.runs, after.runs) < ENOUGH_TO_WIN:
        return f"{before.runs} against {after.runs} runs; {ENOUGH_TO_WIN} each are the least"
    return ""


def _differences(pair: Pair, kind: Literal["must", "may"]) -> Iterator[str]:
    """`precision fp32 in A, bf16 in B`; what one side never came to see is no difference."""
    ours: dict[str, str] = getattr(pair.before.facets, kind)
    theirs: dict[str, str] = getattr(pair.after.facets, kind)
    for name in ours:
        if name in theirs and ours[name] != theirs[name]:
            # The rows of another data set are its own.
            if name == DATA[1] and ours.get(DATA[0]) != theirs.get(DATA[0]):
                continue
            yield plain(f"{name} {ours[name]} in A, {theirs[name]} in B", LONGEST_REASON)
