"""The rules that raise doubts. One small function each: the reason in figures, or None where all is well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import sqrt
from statistics import fmean, median

from msgspec import Struct

from escala.analyse import parity
from escala.analyse.bootstrap import ENOUGH
from escala.analyse.energy_doubts import disagrees, other_meter
from escala.analyse.language import marked, say
from escala.analyse.plain import LONGEST_NAME, plain
from escala.analyse.row import Summary
from escala.analyse.wording import (
    AGAINST,
    counted,
    likeness_text,
    number,
    percent,
    reached_text,
    seconds,
    target_text,
)
from escala.terms.doubts import ADVICE, Doubt
from escala.terms.record import Record

SPREAD = 0.10
"""Standard deviation over mean from which figures are called unstable."""
EXTREME = 0.50
"""Distance from the median, as a share of it, from which one figure makes all of them unstable."""
SHORTEST_WINDOW_S = 0.001
SHORTEST_TRAINING_S = 0.2
_BY_RUN = marked("training times of {runs}: {found}")
_BY_EPOCH = marked("training times an epoch of {runs}: {found}")
_ABOVE = marked("{amount} above ({one} against {other})")
_BELOW = marked("{amount} below ({one} against {other})")


class Case(Struct, frozen=True):
    """What a rule looks at: a row, its runs, and the baseline's row where there is another one."""

    row: Summary
    done: tuple[Record, ...]
    timed: tuple[Record, ...]
    baseline: Summary | None
    first_likeness: tuple[str, ...]


def doubts_of(case: Case) -> dict[Doubt, str]:
    """Every doubt of one row with the figures behind it, in the order of the closed list."""
    found = _carried(case.done)
    for doubt, rule in RULES.items():
        if reason := rule(case):
            found[doubt] = reason
    return in_order(found)


def in_order(found: Mapping[Doubt, str]) -> dict[Doubt, str]:
    """The same doubts in the order of the closed list."""
    return {doubt: found[doubt] for doubt in ADVICE if doubt in found}


def _carried(done: Sequence[Record]) -> dict[Doubt, str]:
    counts: dict[Doubt, int] = {}
    for record in done:
        for doubt in set(record.doubts):
            counts[doubt] = counts.get(doubt, 0) + 1
    return {
        doubt: say("in {count} of {runs}", count=count, runs=counted(len(done), "run"))
        for doubt, count in counts.items()
    }


def _few_repeats(case: Case) -> str | None:
    return counted(len(case.timed), "run") if 0 < len(case.timed) < ENOUGH else None


def _unstable(case: Case) -> str | None:
    # Runs with a target end at different epochs, which is what they find out and no unrest.
    each = case.row.target is not None
    runs = [one.phases.train_s / (max(1, len(one.epochs)) if each else 1) for one in case.timed if one.phases]
    if found := _varies(runs):
        return say(_BY_EPOCH if each else _BY_RUN, runs=counted(len(runs), "run"), found=found)
    for record in case.timed:
        if found := _varies(record.block_seconds):
            return say("block times within a run: {found}", found=found)
    return None


def _varies(times: Sequence[float]) -> str | None:
    if len(times) < 2 or (mean := fmean(times)) <= 0:
        return None
    middle = median(times)
    farthest = max(times, key=lambda time: abs(time - middle))
    if abs(farthest - middle) >= EXTREME * middle:
        return say("one of {time} against a median of {median}", time=seconds(farthest), median=seconds(middle))
    # statistics.stdev works in exact fractions: a hundred times slower over some ten thousand blocks.
    spread = sqrt(sum((time - mean) ** 2 for time in times) / (len(times) - 1)) / mean
    return say("standard deviation {share} of the mean", share=percent(spread)) if spread >= SPREAD else None


def _short_blocks(case: Case) -> str | None:
    for record in case.timed:
        if record.phases and record.phases.train_s < SHORTEST_TRAINING_S:
            return say("training lasted {time}", time=seconds(record.phases.train_s))
        for told, window in _windows(record):
            if window < SHORTEST_WINDOW_S:
                return say(told, time=seconds(window))
    return None


def _windows(record: Record) -> Iterator[tuple[str, float]]:
    yield from ((marked("a block lasted {time}"), block) for block in record.block_seconds)
    for epoch in record.epochs:
        yield marked("an epoch's training lasted {time}"), epoch.train_s
        if epoch.validation_s is not None:
            yield marked("an epoch's validation lasted {time}"), epoch.validation_s
    if record.phases:
        if record.phases.validation_s is not None:
            yield marked("validation lasted {time}"), record.phases.validation_s
        if record.phases.test_s is not None:
            yield marked("the test lasted {time}"), record.phases.test_s


def _other_work(case: Case) -> str | None:
    if case.baseline is None or not case.done:
        return None
    row, baseline = case.row, case.baseline
    if row.target != baseline.target:
        return say(AGAINST, one=_until(row), other=_until(baseline))
    if row.target is not None:
        # The work is to reach the score: how many steps that takes, of whatever batch, is what is measured.
        return None
    pairs = (
        (marked("batch {one} against {other}"), row.batch, baseline.batch),
        (marked("{one} steps against {other}"), row.steps, baseline.steps),
        (marked("{one} samples against {other}"), row.samples, baseline.samples),
    )
    told = [say(what, one=f"{own or 0:,}", other=f"{other or 0:,}") for what, own, other in pairs if own != other]
    return ", ".join(told) or None


def _until(row: Summary) -> str:
    return say("no target") if row.target is None else say("until {target}", target=target_text(row))


def _other_threads(case: Case) -> str | None:
    if case.baseline is None or not case.done or case.row.threads == case.baseline.threads:
        return None
    # Threads that only feed accelerators are no part of the work that is compared.
    if "cpu" not in (case.row.device, case.baseline.device):
        return None
    return say(AGAINST, one=case.row.threads, other=case.baseline.threads)


def _score_below_baseline(case: Case) -> str | None:
    if case.baseline is None or not parity.tested(case.row, case.baseline):
        return None
    return _worse(case.row, case.baseline) if parity.beyond(case.row) and parity.shown_worse(case.row) else None


def _score_untested(case: Case) -> str | None:
    if case.baseline is None or case.row.score_lost is None or parity.tested(case.row, case.baseline):
        return None
    runs = parity.runs_text(case.row, case.baseline)
    return f"{runs}: {_worse(case.row, case.baseline)}" if parity.beyond(case.row) else runs


def _worse(row: Summary, baseline: Summary) -> str:
    assert row.score is not None
    assert baseline.score is not None
    assert row.score_lost is not None
    told = _ABOVE if row.score_better == "lower" else _BELOW
    amount = parity.amount_text(row, row.score_lost.median)
    return say(told, amount=amount, one=number(row.score.median, 4), other=number(baseline.score.median, 4))


def _target_missed(case: Case) -> str | None:
    row = case.row
    if row.target is None or not row.tried or row.reached == row.tried:
        return None
    told = reached_text(row)
    return say("{told} within {epochs}", told=told, epochs=counted(row.epochs, "epoch")) if row.epochs else told


def _generated_data(case: Case) -> str | None:
    return plain(case.row.data, LONGEST_NAME) if case.row.origin == "generated" else None


def _other_host(case: Case) -> str | None:
    if case.row.likeness == case.first_likeness:
        return None
    own, first = Counter(case.row.likeness), Counter(case.first_likeness)
    gone, come = [*(first - own).elements()], [*(own - first).elements()]
    fewer = say("fewer devices")
    return say(AGAINST, one=likeness_text(come) or fewer, other=likeness_text(gone) or fewer)


RULES: dict[Doubt, Callable[[Case], str | None]] = {
    "unstable": _unstable,
    "short blocks": _short_blocks,
    "few repeats": _few_repeats,
    "other work": _other_work,
    "other threads": _other_threads,
    "score below baseline": _score_below_baseline,
    "score untested": _score_untested,
    "target missed": _target_missed,
    "generated data": _generated_data,
    "other host": _other_host,
    "other meter": lambda case: other_meter(case.row, case.baseline),
    "energy disagrees": lambda case: disagrees(case.row, case.done),
}
"""`within noise` needs the ranking, which needs these: compare.py adds it. The others are seen while a trial runs,
and its record carries them."""
