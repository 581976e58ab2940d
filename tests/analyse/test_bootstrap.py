"""Intervals over runs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escala.analyse.bootstrap import EXACT, interval, interval_of, intervals_of, inverse, log_sums, ratio, scaled
from escala.analyse.row import Interval

TIMES = st.floats(min_value=1e-3, max_value=1e6)
RUNS = st.lists(TIMES, min_size=1, max_size=30)


def brute_force(values: list[float]) -> tuple[float, float]:
    """The tails of the median over all n**n resamples."""
    medians = np.sort([np.median(pick) for pick in itertools.product(values, repeat=len(values))])
    cut = int(np.ceil(0.025 * medians.size - 1e-9)) - 1
    return medians[cut], medians[-1 - cut]


@pytest.mark.parametrize("values", [[3.0, 1.0, 4.0, 1.5, 9.0], [2.0, 7.0, 1.0, 8.0, 2.5, 8.5]])
def test_small_samples_are_exhaustively_right(values: list[float]) -> None:
    found = interval(values)
    assert (found.low, found.high) == pytest.approx(brute_force(values), rel=1e-12)
    assert found.median == np.median(values)


def test_an_exact_ratio_equals_all_pairs_of_resamples() -> None:
    above, below = [3.0, 1.0, 4.0, 1.5, 9.0], [2.0, 2.2, 1.9, 2.6, 2.1]
    tops = [np.median(pick) for pick in itertools.product(above, repeat=5)]
    bottoms = [np.median(pick) for pick in itertools.product(below, repeat=5)]
    ratios = np.sort(np.divide.outer(tops, bottoms).ravel())
    cut = int(np.ceil(0.025 * ratios.size)) - 1
    found = ratio(above, below)
    assert (found.low, found.high) == pytest.approx((ratios[cut], ratios[-1 - cut]), rel=1e-12)


@pytest.mark.parametrize("n", [5, 8, 13, EXACT])
def test_exact_and_drawn_intervals_agree(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(n).normal(10, 1, n).tolist()
    exact = interval(values)
    monkeypatch.setattr("escala.analyse.bootstrap.EXACT", 0)
    drawn = interval(values)
    ordered = sorted({(a + b) / 2 for a in values for b in values})
    # A drawn tail may land on a neighbouring median: at most a hundredth of all possible ones away.
    for one, other in ((exact.low, drawn.low), (exact.high, drawn.high)):
        apart = abs(int(np.searchsorted(ordered, one)) - int(np.searchsorted(ordered, other)))
        assert apart <= max(1, len(ordered) // 50)


def test_the_interval_covers_the_true_median_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    intervals = [interval(rng.normal(10, 1, 11).tolist()) for _ in range(400)]
    covered = sum(found.low <= 10 <= found.high for found in intervals)
    assert 0.90 <= covered / 400 <= 0.99


@pytest.mark.parametrize("values", [[2.0], [2.0, 1.0], [5.0, 1.0, 2.0], [4.0, 1.0, 2.0, 3.0]])
def test_few_values_give_the_range_seen(values: list[float]) -> None:
    found = interval(values)
    assert (found.low, found.high) == (min(values), max(values))
    assert found.values == tuple(values)


def test_few_values_on_either_side_give_the_range_of_ratios() -> None:
    found = ratio([6.0, 3.0], [1.0, 2.0, 1.5, 1.2, 1.3, 1.4])
    assert (found.low, found.high) == (1.5, 6.0)
    assert found.median == pytest.approx(4.5 / 1.35)


@pytest.mark.parametrize("bad", [[], [float("nan")], [1.0, float("inf")]])
def test_no_value_and_no_number_are_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        interval(bad)


@pytest.mark.parametrize("bad", [[0.0, 1.0], [-1.0]])
def test_a_ratio_of_nothing_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="above 0"):
        ratio([1.0], bad)
    with pytest.raises(ValueError, match="above 0"):
        ratio(bad, [1.0])


@settings(deadline=None)
@given(values=RUNS)
def test_an_interval_contains_its_median_and_lies_within_the_values(values: list[float]) -> None:
    found = interval(values)
    assert min(values) <= found.low <= found.median <= found.high <= max(values)


@settings(deadline=None)
@given(above=RUNS, below=RUNS)
def test_a_ratio_contains_its_median(above: list[float], below: list[float]) -> None:
    found = ratio(above, below)
    assert found.low <= found.median <= found.high


@settings(deadline=None)
@given(values=RUNS, data=st.data())
def test_the_order_of_runs_does_not_matter(values: list[float], data: st.DataObject) -> None:
    mixed = data.draw(st.permutations(values))
    one, other = interval(values), interval(mixed)
    assert (one.median, one.low, one.high) == (other.median, other.low, other.high)
    one, other = ratio(values, [2.0] * 5), ratio(mixed, [2.0] * 5)
    assert (one.median, one.low, one.high) == (other.median, other.low, other.high)


@settings(deadline=None)
@given(above=RUNS, below=RUNS, power=st.integers(min_value=-8, max_value=8))
def test_a_ratio_does_not_depend_on_the_unit(above: list[float], below: list[float], power: int) -> None:
    factor = 2.0**power
    one = ratio(above, below)
    other = ratio([value * factor for value in above], [value * factor for value in below])
    assert (one.median, one.low, one.high) == (other.median, other.low, other.high)


@settings(deadline=None)
@given(
    above=st.lists(TIMES, min_size=5, max_size=EXACT),
    below=st.lists(TIMES, min_size=5, max_size=EXACT),
)
def test_the_ratio_turned_round_is_the_inverse(above: list[float], below: list[float]) -> None:
    one, turned = ratio(above, below), inverse(ratio(below, above))
    assert (one.median, one.low, one.high) == pytest.approx((turned.median, turned.low, turned.high), rel=1e-9)


def test_the_same_runs_give_the_same_interval() -> None:
    values = np.random.default_rng(3).normal(5, 1, 40).tolist()
    assert interval(values) == interval(values)


def test_scaled_and_inverse_keep_low_below_high() -> None:
    found = Interval(2.0, 1.0, 4.0, (1.0, 2.0, 4.0))
    assert scaled(found, 0.5) == Interval(1.0, 0.5, 2.0, (0.5, 1.0, 2.0))
    assert inverse(found) == Interval(0.5, 0.25, 1.0, (1.0, 0.5, 0.25))


def test_overlap_includes_a_shared_end() -> None:
    low, high, apart = Interval(1.0, 0.0, 2.0, ()), Interval(3.0, 2.0, 4.0, ()), Interval(3.0, 2.5, 4.0, ())
    assert low.overlaps(high)
    assert high.overlaps(low)
    assert not low.overlaps(apart)
    assert not apart.overlaps(low)


SHORT_LISTS = st.lists(st.lists(st.one_of(st.none(), st.just(math.nan), st.floats(-5, 1e6)), max_size=24), max_size=6)


@given(SHORT_LISTS, st.booleans())
def test_many_intervals_at_once_are_those_of_each_alone(found: list[list[float | None]], any_sign: bool) -> None:
    assert intervals_of(found, any_sign=any_sign) == [interval_of(one, any_sign=any_sign) for one in found]


def test_a_sum_of_logarithms_is_that_of_medians_and_of_the_same_resamples() -> None:
    one, other = [1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 2.0, 2.0, 2.0, 2.0]
    first, same, double = log_sums([one, other], [[1, -1], [1, -1], [2, -2]])
    assert first.median == pytest.approx(np.log(1.5))
    assert first == same
    assert (double.low, double.high) == pytest.approx((2 * first.low, 2 * first.high))
    # With the other side constant it is the bootstrap of one median, drawn instead of exact.
    assert np.exp(first.low) * 2 == pytest.approx(interval(one).low)
    assert np.exp(first.high) * 2 == pytest.approx(interval(one).high)
    assert first.values == pytest.approx([np.log(value / 2) for value in one])


@given(RUNS, RUNS, st.floats(min_value=-2, max_value=2), st.floats(min_value=-2, max_value=2))
@settings(max_examples=30, deadline=None)
def test_a_sum_of_logarithms_lies_within_its_interval(
    ours: list[float], theirs: list[float], a: float, b: float
) -> None:
    (found,) = log_sums([ours, theirs], [[a, b]])
    assert found.low <= found.median + 1e-9
    assert found.median <= found.high + 1e-9


@pytest.mark.parametrize("bad", [[], [0.0], [-1.0], [float("nan")]])
def test_a_logarithm_needs_values_above_zero(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="value"):
        log_sums([[1.0], bad], [[1, 1]])
