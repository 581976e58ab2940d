"""Intervals over runs: the percentile bootstrap of a median, exact where that is cheap.

The distribution of the median of a resample is known in closed form, so up to `EXACT` values nothing is
drawn at all: no seed, no sampling error, and a hundred times faster than 10,000 resamples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from math import comb, exp, isfinite

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


def interval(values: Sequence[float], *, never: bool = False) -> Interval:
    """Median with its 95 % percentile bootstrap interval; of fewer than 5 values the range seen.

    `never`: values may be infinite, for what did not happen while it was watched; so may then be the median and the
    ends. A percentile needs no more of a value than its place in the order, so an infinite one does as well as the
    time that it stands for. Raises ValueError when there is no value, or one is not finite where it must be.
    """
    data = _sorted(values, never=never)
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


def intervals_of(found: Sequence[Sequence[float | None]], *, any_sign: bool = False) -> list[Interval | None]:
    """`interval_of` each of many short lists, all lists of one length at once, since numpy takes as long for one."""
    kept = [[v for v in values if v is not None and isfinite(v) and (any_sign or v > 0)] for values in found]
    places: dict[int, list[int]] = {}
    for place, values in enumerate(kept):
        places.setdefault(len(values), []).append(place)
    made: list[Interval | None] = [None] * len(kept)
    for count, same in places.items():
        if ENOUGH <= count <= EXACT:
            whole = np.sort(np.array([kept[place] for place in same], dtype=np.float64), axis=1)
            lower, upper, weights = _median_law(count)
            lows, highs = _tails_of_rows((whole[:, lower] + whole[:, upper]) / 2, weights)
            medians = (whole[:, (count - 1) // 2] + whole[:, count // 2]) / 2
            for place, median, low, high in zip(same, medians.tolist(), lows.tolist(), highs.tolist(), strict=True):
                made[place] = Interval(median, low, high, tuple(kept[place]))
        elif count:
            for place in same:
                made[place] = interval(kept[place])
    return made


def ratio(numerators: Sequence[float], denominators: Sequence[float], *, never: bool = False) -> Interval:
    """Median of the numerators over the median of the denominators, both resampled apart.

    Of fewer than 5 values on either side the interval is the range of all single ratios. `values` holds the
    numerators' median over each denominator. `never`: values may be infinite, but neither median; where both of a
    resample are, their ratio may be anything. Raises ValueError when a side is empty, or a value is not above 0, or
    not finite where it must be.
    """
    above, below = _sorted(numerators, never=never), _sorted(denominators, never=never)
    top, bottom = _median(above), _median(below)
    if above[0] <= 0 or below[0] <= 0 or not isfinite(top) or not isfinite(bottom):
        raise ValueError("a ratio needs values above 0, and medians that are finite")
    if min(above.size, below.size) < ENOUGH:
        low, high = above[0] / below[-1], above[-1] / below[0]
    else:
        low, high = _tails_of(np.divide, above, below)
    return Interval(top / bottom, float(low), float(high), tuple(top / float(v) for v in denominators))


def difference(values: Sequence[float], others: Sequence[float]) -> Interval:
    """Median of the values less the median of the others, both resampled apart.

    Of fewer than 5 values on either side the interval is the range of all single differences. `values` of the result
    holds each value less the others' median. Raises ValueError when a side is empty, or a value is not finite.
    """
    ours, theirs = _sorted(values), _sorted(others)
    if min(ours.size, theirs.size) < ENOUGH:
        low, high = ours[0] - theirs[-1], ours[-1] - theirs[0]
    else:
        low, high = _tails_of(np.subtract, ours, theirs)
    middle = _median(theirs)
    return Interval(_median(ours) - middle, float(low), float(high), tuple(float(v) - middle for v in values))


def log_sums(samples: Sequence[Sequence[float]], weights: Sequence[Sequence[float]]) -> tuple[Interval, ...]:
    """For each line of `weights`, one number for each of `samples`: the weighted sum of their medians' logarithms.

    All samples are resampled apart, the same resamples for every line. Where a sample has fewer than 5 values, the
    interval goes from the least to the greatest sum that single values give. `values` holds the sums by run, for as
    many runs as every sample has. Raises ValueError when a sample is empty, or a value is not finite and above 0.
    """
    sorted_samples = [_sorted(sample) for sample in samples]
    if any(data[0] <= 0 for data in sorted_samples):
        raise ValueError("a logarithm needs values above 0")
    lines = np.asarray(weights, dtype=np.float64).reshape(len(weights), len(sorted_samples))
    middle = lines @ np.log([_median(data) for data in sorted_samples])
    if min(data.size for data in sorted_samples) < ENOUGH:
        least, most = (np.log([data[end] for data in sorted_samples]) for end in (0, -1))
        ends = np.stack([lines * least, lines * most])
        low, high = ends.min(axis=0).sum(axis=1), ends.max(axis=0).sum(axis=1)
    else:
        rng = np.random.default_rng(SEED)
        sums = lines @ np.log([_drawn_medians(data, rng) for data in sorted_samples])
        low, high = np.array([_tails(line, _even_weights(line)) for line in sums]).reshape(-1, 2).T
    common = min(len(sample) for sample in samples)
    by_run = lines @ np.log([sample[:common] for sample in samples])
    found = zip(middle, low, high, by_run, strict=True)
    return tuple(Interval(float(m), float(one), float(two), tuple(map(float, runs))) for m, one, two, runs in found)


def exponential(found: Interval) -> Interval:
    """A ratio from its logarithm."""
    return Interval(exp(found.median), exp(found.low), exp(found.high), tuple(exp(value) for value in found.values))


def _tails_of(of_two: np.ufunc, ours: Floats, theirs: Floats) -> tuple[float, float]:
    """The tails of what `of_two` makes of both medians, all sides of 5 values or more."""
    if max(ours.size, theirs.size) <= EXACT:
        one, one_weights = _exact_medians(ours)
        other, other_weights = _exact_medians(theirs)
        # The combination of two infinite medians is no number: as low as can be for the low end, and as high.
        with np.errstate(invalid="ignore"):
            points = of_two(one[:, None], other).ravel()
        weights = (one_weights[:, None] * other_weights).ravel()
    else:
        rng = np.random.default_rng(SEED)
        with np.errstate(invalid="ignore"):
            points = of_two(_drawn_medians(ours, rng), _drawn_medians(theirs, rng))
        weights = _even_weights(points)
    unknown = np.isnan(points)
    low, _ = _tails(np.where(unknown, 0.0, points), weights)
    _, high = _tails(np.where(unknown, np.inf, points), weights)
    return low, high


def scaled(found: Interval, factor: float) -> Interval:
    """The same interval in another unit; `factor` is above 0."""
    values = tuple(value * factor for value in found.values)
    return Interval(found.median * factor, found.low * factor, found.high * factor, values)


def inverse(found: Interval) -> Interval:
    """Seconds a sample from samples a second, and back."""
    return Interval(1 / found.median, 1 / found.high, 1 / found.low, tuple(1 / v for v in found.values))


def _sorted(values: Sequence[float], *, never: bool = False) -> Floats:
    data = np.sort(np.asarray(values, dtype=np.float64))
    if data.size == 0 or not (np.isfinite(data) | (never & np.isposinf(data))).all():
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


def _tails_of_rows(points: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """`_tails` of each row of `points` (rows, n), all with the same `weights` (n)."""
    order = np.argsort(points, axis=1)
    ordered = np.take_along_axis(points, order, axis=1)
    above = weights[order]
    from_low = (np.cumsum(above, axis=1) < TAIL - _ROUNDING).sum(axis=1)
    from_high = (np.cumsum(above[:, ::-1], axis=1) < TAIL - _ROUNDING).sum(axis=1)
    rows, last = np.arange(len(points)), points.shape[1] - 1
    return ordered[rows, from_low], ordered[rows, last - from_high]


def _tails(points: Floats, weights: Floats) -> tuple[float, float]:
    """The points that cut 2.5 % off at either end; turned round, they are the same points."""
    order = np.argsort(points)
    points, weights = points[order], weights[order]
    low = np.searchsorted(np.cumsum(weights), TAIL - _ROUNDING)
    high = points.size - 1 - np.searchsorted(np.cumsum(weights[::-1]), TAIL - _ROUNDING)
    return float(points[low]), float(points[high])
