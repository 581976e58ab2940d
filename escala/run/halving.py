"""The search for the fastest execution: single changes first, then what they make together, by successive halving.

Successive halving: all contenders get a short run, the better half a run twice as long, until one is left (Jamieson
and Talwalkar 2016, "Non-stochastic best arm identification and hyperparameter optimization"). Pure: measuring is the
caller's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from escala.terms.experiment import ExecutionSpec
from escala.terms.record import Tried

CLEARLY = 1.02
"""Less than this over the plain execution is noise, and the plain one stays."""
HOPELESS = 0.9
"""A single change below this share of the plain execution's speed is not tried together with others."""
MOST = 12
"""Combinations that enter the contest."""
CURVE = 20
"""Steps over which loss curves are compared; later, rounding grows."""
TOLERANCE: dict[str, float] = {"fp64": 1e-8, "fp32": 1e-4, "tf32": 2e-2, "bf16": 5e-2, "fp16": 5e-2, "fp8": 0.2}


class Measured(Struct, frozen=True):
    """What one short run gave; `reason`: why it gave nothing."""

    samples_per_second: float | None = None
    losses: tuple[float, ...] = ()
    reason: str | None = None


Measure = Callable[[ExecutionSpec, float], Measured]
"""Runs an execution for about so many seconds."""
Curve = Callable[[ExecutionSpec], Measured]
"""Runs an execution for the first steps, so that its losses can be compared with others'."""


class Found(Struct, frozen=True):
    """The execution that was chosen, all that were tried in that order, and whether time ran out."""

    execution: ExecutionSpec
    tried: tuple[Tried, ...]
    cut_short: bool


def search(
    plain: ExecutionSpec,
    free: Mapping[str, Sequence[Any]],
    measure: Measure,
    clock: Callable[[], float],
    limit_s: float,
    first_s: float = 1.0,
    curve: Curve | None = None,
) -> Found:
    """The fastest of `plain` with any values of the `free` keys that gives the same loss curve.

    `curve`: where the losses of runs that are timed say nothing, because the network draws random numbers, the run
    whose losses do; only who would win makes it. No run that is timed is begun after `limit_s` seconds; the best of
    those made then wins. Raises ValueError where `plain` itself cannot be run.
    """
    end = clock() + limit_s
    book = _Book(plain, measure, clock, end, curve)
    if book.run(plain, first_s) is None:
        raise ValueError(book.tried[0].reason or "it gave no rate")
    worth = {
        key: [value for value in values if _promising(book, plain, key, value, first_s)]
        for key, values in free.items()
    }
    combined = _combinations(book, plain, worth)
    contenders, fallen, seconds = combined, list[ExecutionSpec](), first_s
    while len(contenders) > 1 and clock() < end:
        for one in contenders:
            book.run(one, seconds)
        known = sorted((one for one in contenders if book.rate(one)), key=lambda one: -(book.rate(one) or 0.0))
        stay = math.ceil(len(known) / 2) if len(known) > 2 else 1
        contenders, fallen, seconds = known[:stay], [*known[stay:], *fallen], 2 * seconds
    # Not all by their rates: who fell out on a long run may hold the luckiest of the short ones.
    ranked = [*sorted(contenders, key=lambda one: -(book.rate(one) or 0.0)), *fallen]
    best = _first_that_learns_the_same(book, plain, ranked)
    return Found(best, tuple(book.tried), clock() >= end)


class _Book:
    """What was measured of each execution: the longest run counts."""

    def __init__(
        self, plain: ExecutionSpec, measure: Measure, clock: Callable[[], float], end: float, curve: Curve | None
    ) -> None:
        self.tried = list[Tried]()
        self._plain = plain
        self._measure = measure
        self._measure_curve = curve
        self._clock = clock
        self._end = end
        self._rates = dict[ExecutionSpec, float | None]()
        self._lengths = dict[ExecutionSpec, float]()
        self._curve: tuple[float, ...] = ()

    def rate(self, execution: ExecutionSpec) -> float | None:
        """Samples a second; None where it was not run, cannot be, or learns something else."""
        return self._rates.get(execution)

    def run(self, execution: ExecutionSpec, seconds: float) -> float | None:
        """Its rate, measured for so long, or for longer before."""
        known = self._lengths.get(execution, 0.0)
        refused = known > 0 and self._rates[execution] is None
        if refused or known >= seconds or (self._clock() >= self._end and execution != self._plain):
            return self.rate(execution)
        found = self._measure(execution, seconds)
        rate, reason = found.samples_per_second, found.reason
        if rate is not None and self._measure_curve is None and (other := self._other(execution, found)):
            rate, reason = None, other
        self._rates[execution], self._lengths[execution] = rate, seconds
        self.tried.append(Tried(execution, seconds, found.samples_per_second, reason))
        return rate

    def learns_the_same(self, execution: ExecutionSpec) -> bool:
        """Whether its losses are the plain ones; what was run to see it is noted where they are not."""
        if self._measure_curve is None or execution == self._plain:
            return True
        for one in (execution,) if self._curve else (self._plain, execution):
            found = self._measure_curve(one)
            if reason := found.reason or self._other(one, found):
                self.tried.append(Tried(one, 0.0, None, reason))
                return False
        return True

    def _other(self, execution: ExecutionSpec, found: Measured) -> str | None:
        """What is to be said where it learns something else than the plain execution, whose curve is kept."""
        curve = found.losses[:CURVE]
        if execution == self._plain:
            self._curve = self._curve or curve
        apart, limit = _difference(curve, self._curve), TOLERANCE[execution.precision]
        return f"its losses differ by {apart:.2g} from the plain ones, more than {limit:g}" if apart > limit else None


def _combinations(book: _Book, plain: ExecutionSpec, worth: Mapping[str, Sequence[Any]]) -> list[ExecutionSpec]:
    """Combinations of what is worth it, and the plain one; of very many those with the largest product of gains."""

    def gain(key: str, value: Any) -> float:
        if value == getattr(plain, key):
            return 1.0
        return (book.rate(msgspec.structs.replace(plain, **{key: value})) or 0.0) / (book.rate(plain) or math.inf)

    choices = itertools.product(*([getattr(plain, key), *values] for key, values in worth.items()))
    ranked = sorted(
        (dict(zip(worth, values, strict=True)) for values in choices),
        key=lambda chosen: -math.prod(gain(key, value) for key, value in chosen.items()),
    )
    found = [msgspec.structs.replace(plain, **chosen) for chosen in ranked[:MOST]]
    return found if plain in found else [*found, plain]


def _promising(book: _Book, plain: ExecutionSpec, key: str, value: Any, seconds: float) -> bool:
    if value == getattr(plain, key):
        return False
    rate = book.run(msgspec.structs.replace(plain, **{key: value}), seconds)
    return rate is not None and rate >= HOPELESS * (book.rate(plain) or 0.0)


def _first_that_learns_the_same(book: _Book, plain: ExecutionSpec, ranked: Sequence[ExecutionSpec]) -> ExecutionSpec:
    """Of the winner and those behind it; the plain execution, where nobody is clearly faster."""
    for one in ranked:
        if (book.rate(one) or 0.0) < CLEARLY * (book.rate(plain) or math.inf):
            break
        if book.learns_the_same(one):
            return one
    return plain


def _difference(curve: Sequence[float], other: Sequence[float]) -> float:
    """The largest relative difference of two curves of losses; infinite where one is not finite."""
    pairs = list(zip(curve, other, strict=False))
    if any(not math.isfinite(value) for pair in pairs for value in pair):
        return math.inf
    return max((abs(one - two) / max(abs(two), 1e-12) for one, two in pairs), default=0.0)
