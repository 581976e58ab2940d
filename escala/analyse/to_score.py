"""Time to score: how soon the runs of a row came to `train.until`, where some of them never did.

A run that ended without the score is known only to need longer than it was given. It counts as infinite, which leaves
the median and its interval right as long as enough runs got there, and says "never" where too few did. Leaving such
runs out would make the row the faster, the more of its runs failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf, isfinite
from typing import Any

from escala.analyse.bootstrap import interval, ratio
from escala.analyse.group import Group
from escala.analyse.row import Interval, Summary
from escala.terms.record import Record, ToScore


def measured(group: Group) -> dict[str, Any]:
    """The fields of a row that tell of its target; none where its trials had none.

    A diverged run never came there. A run that crashed or did not fit says nothing of its training. A disturbed run
    counts for what it reached, and not for how soon; so does one that was there for its energy.
    """
    target = group.records[0].trial.train.until
    if target is None:
        return {}
    known = [(record, found) for record in group.records if (found := record.to_score) is not None and _ended(record)]
    soon = [found for record, found in known if "disturbed" not in record.doubts and record.trial.timed]
    return {
        "target": target,
        "target_name": next((found.metric for _, found in known), None),
        "reached": sum(found.reached for _, found in known),
        "tried": len(known),
        "to_score_s": _censored(map(_seconds, soon)),
        "to_score_epochs": _censored(float(found.epochs) if found.reached else inf for _, found in known),
    }


def speedup(row: Summary, baseline: Summary) -> Interval | None:
    """The baseline's time to score over the row's; None where one of them has none, or has it for another score."""
    own, other = row.to_score_s, baseline.to_score_s
    if not same_target(row, baseline) or own is None or other is None:
        return None
    if not isfinite(own.median) or not isfinite(other.median):
        return None
    return ratio(other.values, own.values, never=True)


def same_target(row: Summary, other: Summary) -> bool:
    """Whether both were to train until the same score."""
    return row.target is not None and (row.target, row.target_name) == (other.target, other.target_name)


def mostly_never(row: Summary) -> bool:
    """Whether the row had a target that its runs mostly did not come to."""
    return row.to_score_s is not None and not isfinite(row.to_score_s.median)


def alike(values: Sequence[int]) -> int | None:
    """The number that all runs have in common: with a target each may end at another step."""
    return values[0] if values and len(set(values)) == 1 else None


def _ended(record: Record) -> bool:
    return record.outcome in ("done", "diverged")


def _seconds(found: ToScore) -> float | None:
    if not found.reached:
        return inf
    return found.total_s if isfinite(found.total_s) and found.total_s > 0 else None


def _censored(found: Iterable[float | None]) -> Interval | None:
    values = [value for value in found if value is not None]
    return interval(values, never=True) if values else None
