"""Intervals over runs: the percentile bootstrap of a median, exact where that is cheap.

The distribution of the median of a resample is known in closed form, so up to `EXACT` values nothing is
drawn at all: no seed, no sampling error, and a hundred times faster than 10,000 resamples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import comb, isfinite

import numpy as np
from numpy.typing import NDArray

from escala.analyse.row import Interval

ENOUGH = 5
"""Fewer runs than this carry no bootstrap: the interval is the range seen."""
EXACT = 20
RESAMPLES = 10_000
SEED = 20_210_607
TAIL = 0.025
# Sums of probabilities are off by some 1e-16; a tail that is exactly 2.5 % must not fall to the wrong side.
_ROUNDING = 1e-12

Floats = NDArray[np.float64]


def interval(values: Sequence[float]) -> Interval:
    """Median with its 95 % percentile bootstrap interval; of fewer than 5 values the range seen.

    Raises ValueError when there is no value or one is not finite.
    """
    data = _sorted(values)
    if data.size < ENOUGH:
        low, high = data[0], data[-1]
    elif data.size <= EXACT:
        low, high = _tails(*_exact_medians(data))
    else:
        medians = _drawn_medians(data, np.random.default_rng(SEED))
        low, high = _tails(medians, _even_weights(medians))
    return Interval(_median(data), float(low), float(high), tuple(float(value) for value in values))


def interval_of(found: Iterable[float | None], *, any_sign: bool = False) -> Interval | None:
    """The interval of figures as a log holds them; None where there is none.

    A log is read from a file: a time of 0 or below is no measurement, and no ratio can be made of it. `any_sign`: the
    figures are no times.
    """
    values = [value for value in found if value is not None and isfinite(value) and (any_sign or value > 0)]
    return interval(values) if values else None


def ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Interval:
    """Median of the numerators over the median of the denominators, both resampled apart.

    Of fewer than 5 values on either side the interval is the range of all single ratios. `values` holds the
    numerators' median over each denominator. Raises ValueError when a side is empty, or a value is not finite
    and above 0.
    """
    above, below = _sorted(numerators), _sorted(denominators)
    if above[0] <= 0 or below[0] <= 0:
        raise ValueError("a ratio needs values above 0")
    top = _median(above)
    if min(above.size, below.size) < ENOUGH:
        low, high = above[0] / below[-1], above[-1] / below[0]
    elif max(above.size, below.size) <= EXACT:
        tops, top_weights = _exact_medians(above)
        bottoms, bottom_weights = _exact_medians(below)
        ratios, weights = tops[:, None] / bottoms, top_weights[:, None] * bottom_weights
        low, high = _tails(ratios.ravel(), weights.ravel())
    else:
        rng = np.random.default_rng(SEED)
        ratios = _drawn_medians(above, rng) / _drawn_medians(below, rng)
        low, high = _tails(ratios, _even_weights(ratios))
    return Interval(top / _median(below), float(low), float(high), tuple(top / float(v) for v in denominators))


def scaled(found: Interval, factor: float) -> Interval:
    """The same interval in another unit; `factor` is above 0."""
    values = tuple(value * factor for value in found.values)
    return Interval(found.median * factor, found.low * factor, found.high * factor, values)


def inverse(found: Interval) -> Interval:
    """Seconds a sample from samples a second, and back."""
    return Interval(1 / found.median, 1 / found.high, 1 / found.low, tuple(1 / v for v in found.values))


def _sorted(values: Sequence[float]) -> Floats:
    data = np.sort(np.asarray(values, dtype=np.float64))
    if data.size == 0 or not np.isfinite(data).all():
        raise ValueError("an interval needs at least one value, all of them finite")
    return data


def _median(data: Floats) -> float:
    lower, upper = data[(data.size - 1) // 2], data[data.size // 2]
    return float(lower + upper) / 2


def _exact_medians(data: Floats) -> tuple[Floats, Floats]:
    """Every median that a resample of `data` (sorted) can have, with its probability."""
    lower, upper, weights = _median_law(data.size)
    return (data[lower] + data[upper]) / 2, weights


@cache
def _median_law(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Floats]:
    """Which two of n sorted values meet in the median of a resample of n, and how likely each pair is."""
    ranks = np.arange(1, n + 1)
    if n % 2:
        at_most = np.array([_at_least(n // 2 + 1, n, k / n) for k in range(n + 1)])
        return ranks - 1, ranks - 1, np.diff(at_most)
    half = n // 2
    at_most = np.array([_at_least(half, n, k / n) for k in range(n + 1)])
    lower_is = np.diff((np.arange(n + 1) / n) ** half)
    upper_is = lower_is[::-1]
    # The lower half ends at rank i and the upper half begins at rank j > i: the halves are then independent.
    pairs = np.triu(comb(n, half) * lower_is[:, None] * upper_is, k=1)
    np.fill_diagonal(pairs, np.diff(at_most) - pairs.sum(axis=1))
    lower, upper = np.triu_indices(n)
    return lower, upper, pairs[lower, upper]


def _at_least(wanted: int, n: int, p: float) -> float:
    """Probability of at least `wanted` hits in n draws of chance p."""
    return sum(comb(n, hits) * p**hits * (1 - p) ** (n - hits) for hits in range(wanted, n + 1))


def _drawn_medians(data: Floats, rng: np.random.Generator) -> Floats:
    picks = np.sort(rng.integers(data.size, size=(RESAMPLES, data.size)), axis=1)
    lower, upper = picks[:, (data.size - 1) // 2], picks[:, data.size // 2]
    medians: Floats = (data[lower] + data[upper]) / 2
    return medians


def _even_weights(medians: Floats) -> Floats:
    return np.full(medians.size, 1 / medians.size)


def _tails(points: Floats, weights: Floats) -> tuple[float, float]:
    """The points that cut 2.5 % off at either end; turned round, they are the same points."""
    order = np.argsort(points)
    points, weights = points[order], weights[order]
    low = np.searchsorted(np.cumsum(weights), TAIL - _ROUNDING)
    high = points.size - 1 - np.searchsorted(np.cumsum(weights[::-1]), TAIL - _ROUNDING)
    return float(points[low]), float(points[high])
