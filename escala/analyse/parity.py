"""Parity: whether a row kept the baseline's score, and what its speed cost of it."""

from __future__ import annotations

from escala.analyse.bootstrap import difference, scaled
from escala.analyse.language import noun, say
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import AGAINST, counted, number

_ROUNDING = 1e-9
_POINTS = 100


def lost(row: Summary, baseline: Summary) -> Interval | None:
    """How much worse the row's score is than the baseline's, as `Summary.score_lost`; None: no comparison."""
    own, other = row.score, baseline.score
    if row is baseline or own is None or other is None or row.score_name != baseline.score_name:
        return None
    if row.score_better == "higher":
        found = difference(other.values, own.values)
        # By run of the row, as everywhere else.
        return Interval(found.median, found.low, found.high, tuple(other.median - value for value in own.values))
    # A score that should be low has no scale of its own; one of exactly 0 cannot be one either.
    return scaled(difference(own.values, other.values), 1 / (abs(other.median) or 1.0))


def tested(row: Summary, baseline: Summary) -> bool:
    """Whether both sides have repeats: one run against another differs by chance, however well both are trained."""
    return all(one.score is not None and len(one.score.values) > 1 for one in (row, baseline))


def beyond(row: Summary) -> bool:
    """Whether more was lost than is allowed, by the median."""
    return row.score_lost is not None and row.score_lost.median > row.tolerance + _ROUNDING


def shown_worse(row: Summary) -> bool:
    """Whether the whole interval of what was lost lies above 0, so that it is no chance."""
    return row.score_lost is not None and row.score_lost.low > 0


def in_points(row: Summary) -> bool:
    """Whether the score is a share of 1, whose hundredths are called points."""
    scores = row.score.values if row.score else ()
    return row.score_better == "higher" and all(0 <= value <= 1 for value in scores)


def unit(row: Summary) -> str:
    """What `score_lost` is counted in: `points`, `%`, or nothing for a score on a scale of its own."""
    return "points" if in_points(row) else "%" if row.score_better == "lower" else ""


def unit_text(row: Summary, *, one: bool = False) -> str:
    """The same in words; `one`: of exactly one."""
    return noun("point", plural=not one) if unit(row) == "points" else unit(row)


def in_unit(row: Summary) -> Interval | None:
    """`score_lost` in its unit."""
    if row.score_lost is None or not unit(row):
        return row.score_lost
    return scaled(row.score_lost, _POINTS)


def amount_text(row: Summary, value: float) -> str:
    """A part of a score, by its unit: `2.3 points`, `15 %`, `0.40`."""
    return _with_unit(row, number(value if not unit(row) else _POINTS * value, 2))


def tolerance_text(row: Summary) -> str:
    """What may be lost, as it was written: `1 point`, `0.5 points`, `1 %`."""
    return _with_unit(row, f"{row.tolerance if not unit(row) else _POINTS * row.tolerance:.6g}")


def _with_unit(row: Summary, amount: str) -> str:
    return f"{amount} {unit_text(row, one=amount == '1')}".rstrip()


def runs_text(row: Summary, baseline: Summary) -> str:
    """`1 run against 5`."""
    own, other = (len(one.score.values) if one.score else 0 for one in (row, baseline))
    return say(AGAINST, one=counted(own, "run"), other=other)
