"""Where a speed-up came from: each factor's share of it, over the measured mixtures of a baseline and a target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import exp, factorial, isfinite
from typing import Any

import msgspec
from msgspec import Struct

from escala.analyse.bootstrap import exponential, log_sums, scaled
from escala.analyse.compare import Block, blocks, pace, point_text
from escala.analyse.group import grouped, point_key
from escala.analyse.language import marked, say
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain
from escala.analyse.row import Interval, Summary
from escala.analyse.sentences import ENOUGH_TO_WIN
from escala.analyse.shapley import Subset, Weights, interaction_weights, share_weights
from escala.analyse.wording import outcomes_text
from escala.terms.factors import Factors, Settings, factors, taken_by
from escala.terms.record import Record
from escala.terms.trial import Trial

_NO_BASELINE = marked("the baseline has no times here")
_NO_TARGET = marked("the target has no times here")
_NO_ORDER = marked(
    "no order of adding the factors one by one was measured; escala run EXPERIMENT --attribute runs them"
)


class Factor(Struct, frozen=True):
    """What one factor brought. `changes` tells its keys; `speedup` multiplies, `share` adds up to 1 over all factors.

    `share` is a part of the logarithm of the measured whole; None where that is no sure speed-up.
    """

    name: str
    changes: tuple[str, ...]
    speedup: Interval
    share: Interval | None


class Interaction(Struct, frozen=True):
    """Two factors together: above 1 they bring more than each by itself, below 1 less."""

    one: str
    other: str
    speedup: Interval


class Bar(Struct, frozen=True):
    """One step of the waterfall: the speed-up over the baseline before and after it."""

    name: str
    begin: float
    end: float


class Attribution(Struct, frozen=True):
    """One block's speed-up from baseline to target, taken apart. Field names are public: add, never rename.

    `orders` of the `possible` orders of adding the factors were measured; where all were, shares are Shapley values
    and `interactions` are there. `reason`: why nothing could be taken apart. `missing`: mixtures without times.
    """

    point: dict[str, Any]
    baseline: str
    target: str
    names: tuple[str, ...]
    orders: int
    possible: int
    total: Interval | None = None
    factors: tuple[Factor, ...] = ()
    interactions: tuple[Interaction, ...] = ()
    waterfall: tuple[Bar, ...] = ()
    missing: tuple[str, ...] = ()
    worse_score: str | None = None
    reason: str | None = None


def ends_text(one: Attribution) -> str:
    """`single -> ddp x2, batch = 64`: the rows it leads from and to, and where, safe to show."""
    names = f"{plain(one.baseline, LONGEST_NAME)} -> {plain(one.target, LONGEST_NAME)}"
    return ", ".join(filter(None, (names, point_text(one.point))))


def attributions(records: Iterable[Record], summaries: Sequence[Summary], target: str) -> tuple[Attribution, ...]:
    """For each block of comparable rows where both ends were tried, the shares of the target's speed-up.

    `summaries` come of the same records; their baseline is where the speed-up starts, `target` the label of its end.
    """
    trials = {
        (one.records[0].trial.label, point_key(one.records[0].trial.point), one.digest, one.likeness): one.records[0]
        for one in grouped(records)
    }
    found = []
    for block in blocks(summaries):
        rows = [(row, trials[row.label, point_key(row.point), row.digest, row.likeness].trial) for row in block]
        ends = [
            next((pair for pair in rows if pair[0].label == label), None) for label in (block[0].baseline, target)
        ]
        if ends[0] is not None and ends[1] is not None and ends[0] is not ends[1]:
            found.append(_attribution(block, rows, ends[0], ends[1]))
    return tuple(found)


_Row = tuple[Summary, Trial]


def _attribution(block: Block, rows: Sequence[_Row], baseline: _Row, target: _Row) -> Attribution:
    before, after = settings_of(baseline[1]), settings_of(target[1])
    of = factors(before, after)
    known: dict[Subset, Sequence[float]] = {}
    missing = []
    for row, trial in rows:
        subset = taken_by(settings_of(trial), before, after, of)
        if subset is None or subset in known:
            continue
        if times := _times(row):
            known[subset] = times
        else:
            missing.append(f"{plain(row.label, LONGEST_NAME)}: {outcomes_text(row)}")
    orders, weights = share_weights(tuple(of), known)
    shell = Attribution(
        point=block[0].point,
        baseline=baseline[0].label,
        target=target[0].label,
        names=tuple(of),
        orders=orders,
        possible=factorial(len(of)),
        missing=tuple(missing),
        worse_score=target[0].doubts.get("score below baseline"),
    )
    if not orders:
        return msgspec.structs.replace(shell, reason=_why_none(of, known))
    return _shared(shell, known, weights, {name: tuple(_changes(keys, before, after)) for name, keys in of.items()})


def _shared(
    shell: Attribution,
    known: Mapping[Subset, Sequence[float]],
    weights: Mapping[str, Weights],
    changes: Mapping[str, tuple[str, ...]],
) -> Attribution:
    names = shell.names
    whole: Weights = {frozenset(names): 1.0, frozenset(): -1.0}
    pairs = list(combinations(names, 2)) if len(known) == 2 ** len(names) else []
    together = [interaction_weights(names, one, other) for one, other in pairs]
    subsets = list(known)
    # A shorter time is a greater value, hence the sign.
    lines = [[-of.get(subset, 0.0) for subset in subsets] for of in (whole, *weights.values(), *together)]
    total, *rest = log_sums([known[subset] for subset in subsets], lines)
    sure = total.low > 0 and min(map(len, known.values())) >= ENOUGH_TO_WIN
    shares, interactions = rest[: len(names)], rest[len(names) :]
    return msgspec.structs.replace(
        shell,
        total=exponential(total),
        factors=tuple(
            Factor(name, changes[name], exponential(share), scaled(share, 1 / total.median) if sure else None)
            for name, share in zip(names, shares, strict=True)
        ),
        interactions=tuple(
            Interaction(one, other, exponential(found))
            for (one, other), found in zip(pairs, interactions, strict=True)
        ),
        waterfall=tuple(_bars(names, shares)),
    )


def _bars(names: Sequence[str], shares: Sequence[Interval]) -> Iterator[Bar]:
    height = 0.0
    for name, share in zip(names, shares, strict=True):
        yield Bar(name, exp(height), exp(height + share.median))
        height += share.median


def settings_of(trial: Trial) -> dict[str, Any]:
    """A trial as the flat table that factors are made of."""
    sitting = msgspec.structs.asdict(trial.strategy)
    return {
        **{f"strategy.{key}": value for key, value in sitting.items()},
        "peer": trial.peer,
        **{f"execution.{key}": value for key, value in msgspec.structs.asdict(trial.execution).items()},
        **{f"train.{key}": value for key, value in msgspec.structs.asdict(trial.train).items()},
    }


def _times(row: Summary) -> Sequence[float] | None:
    """By run, what the row is ranked by; None where it has no times or mostly never came to its score."""
    found = pace(row) if row.runs else None
    return found.values if found and all(map(isfinite, found.values)) else None


def _changes(keys: Iterable[str], before: Settings, after: Settings) -> Iterator[str]:
    for key in keys:
        old, new = (_text(row.get(key)) for row in (before, after))
        yield plain(f"{key} {old} -> {new}", LONGEST_REASON)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _why_none(of: Factors, known: Mapping[Subset, Sequence[float]]) -> str:
    if not of:
        return say("the two rows differ in nothing that is a factor")
    for subset, told in ((frozenset[str](), _NO_BASELINE), (frozenset(of), _NO_TARGET)):
        if subset not in known:
            return say(told)
    return say(_NO_ORDER)
