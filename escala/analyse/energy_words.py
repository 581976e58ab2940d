"""What is said of energy in the verdict: which of the ranked rows took the fewest joules for the same work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from escala.analyse.energy_rows import same_meter
from escala.analyse.language import marked, say
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import joules, listed, name, times_text
from escala.terms.doubts import Doubt

NOT_QUOTED: tuple[Doubt, ...] = ("shared device", "short energy window", "energy disagrees")
"""A row with one of these is not set against others by its energy."""


_KINDS = {
    (False, False): marked("energy"),
    (True, False): marked("estimated energy"),
    (False, True): marked("energy to the score"),
    (True, True): marked("estimated energy to the score"),
}
"""By whether it is estimated, and whether there is a target."""


def fewest(ranking: Sequence[Summary], enough: int) -> Iterator[str]:
    """One sentence on rows that did the baseline's work; none where fewer than two of them can be set side by side.

    `enough` is how many runs of each row it takes, so that what is found is not chance.
    """
    baseline = next((row for row in ranking if row.is_baseline), None)
    if baseline is None:
        return
    known = [row for row in ranking if _energy(row) and same_meter(row, baseline) and not _is_doubtful(row)]
    if len(known) < 2 or baseline not in known:
        return
    best, *others = sorted(known, key=lambda row: _interval(row).median)
    close = [row for row in others if _interval(row).overlaps(_interval(best))]
    if close:
        rows = listed([name(row) for row in (best, *close)])
        yield say("By {energy} {rows} cannot be told apart.", energy=_kind(known), rows=rows)
    elif min(row.energy_runs for row in known) < enough:
        told = _told(best, others, baseline, known)
        yield say("By the median {told}, but fewer than {enough} runs may show chance.", told=told, enough=enough)
    else:
        yield f"{_told(best, others, baseline, known)}."


def _told(best: Summary, others: Sequence[Summary], baseline: Summary, known: Sequence[Summary]) -> str:
    against = others[0] if best is baseline else baseline
    told = say(
        "{row} took the least {energy}: {own} against {other} of {against}",
        row=name(best),
        energy=_kind(known),
        own=joules(_interval(best)),
        other=joules(_interval(against)),
        against=name(against),
    )
    if best is not baseline and best.edp_ratio is not None:
        return say("{told}, and {times} its EDP", told=told, times=times_text(best.edp_ratio))
    return told


def _kind(rows: Sequence[Summary]) -> str:
    estimated = any("estimated" in row.energy_how.values() for row in rows)
    return say(_KINDS[estimated, rows[0].target is not None])


def _energy(row: Summary) -> Interval | None:
    found = row.energy_j if row.target is None else row.to_score_energy_j
    return found if found is not None and isfinite(found.median) else None


def _interval(row: Summary) -> Interval:
    found = _energy(row)
    assert found is not None
    return found


def _is_doubtful(row: Summary) -> bool:
    return bool(set(NOT_QUOTED) & set(row.doubts))
