from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.meters.integrate import counted, integrated, mean_in, samples_in
from escala.terms.errors import Unavailable


def at(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_a_counter_between_its_readings_goes_by_straight_lines() -> None:
    # 10 W for two seconds, then 30 W for two.
    seconds, joules = at(0, 2, 4), at(500, 520, 580)
    assert counted(seconds, joules, [(1, 3)]) == pytest.approx(10 + 30)
    assert counted(seconds, joules, [(0, 1), (3.5, 4)]) == pytest.approx(10 + 15)


def test_watts_go_by_the_trapezoid_rule_with_lines_between_the_samples() -> None:
    seconds, watts = at(0, 1, 3), at(0, 10, 20)
    # 0 to 1: mean 5 W; 1 to 3: mean 15 W.
    assert integrated(seconds, watts, [(0, 3)]) == pytest.approx(5 + 30)
    # 0.5 to 1: mean of 5 and 10 W; 1 to 2: mean of 10 and 15 W.
    assert integrated(seconds, watts, [(0.5, 2)]) == pytest.approx(0.5 * 7.5 + 12.5)
    assert mean_in(seconds, watts, [(0.5, 2)]) == pytest.approx((0.5 * 7.5 + 12.5) / 1.5)


@given(
    st.lists(st.floats(0.01, 3), min_size=3, max_size=30),
    st.floats(0.1, 900),
    st.lists(st.floats(0, 1), min_size=4, max_size=4, unique=True),
)
def test_constant_power_is_the_same_by_both_ways(gaps: list[float], watts: float, cuts: list[float]) -> None:
    seconds = np.cumsum([0.0, *gaps])
    a, b, c, d = (float(cut * seconds[-1]) for cut in sorted(cuts))
    windows = [(a, b), (c, d)]
    expected = watts * (b - a + d - c)
    by_counter = counted(seconds, 7 + watts * seconds, windows, update_s=10)
    assert by_counter == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert integrated(seconds, np.full(len(seconds), watts), windows) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(st.lists(st.floats(0, 500), min_size=4, max_size=20), st.floats(0, 1))
def test_windows_side_by_side_add_up_to_the_whole(watts: list[float], cut: float) -> None:
    seconds = np.arange(len(watts), dtype=np.float64)
    end = float(seconds[-1])
    parts = integrated(seconds, at(*watts), [(0, cut * end)]) + integrated(seconds, at(*watts), [(cut * end, end)])
    assert parts == pytest.approx(integrated(seconds, at(*watts), [(0, end)]), rel=1e-9, abs=1e-9)


def test_a_counter_that_runs_backwards_is_refused_and_only_where_it_matters() -> None:
    seconds, joules = at(0, 1, 2, 3, 4), at(9, 1, 2, 3, 4)
    with pytest.raises(Unavailable, match="ran backwards"):
        counted(seconds, joules, [(0.5, 3)])
    assert counted(seconds, joules, [(1, 3)]) == 2


def test_a_counter_that_stands_still_is_refused() -> None:
    seconds = np.arange(0, 10, 0.5)
    joules = np.where(seconds < 4, seconds, 4.0)
    with pytest.raises(Unavailable, match=r"stood still for 5\.0 s"):
        counted(seconds, joules, [(0, 9)])
    assert counted(seconds, joules, [(0, 4)]) == 4


def test_a_counter_renewed_seldom_does_not_stand_still() -> None:
    seconds = np.arange(0, 60, 0.5)
    joules = np.floor(seconds / 3) * 300
    assert counted(seconds, joules, [(3, 57)], update_s=3) == pytest.approx(100 * 54)


def test_power_below_zero_is_refused() -> None:
    with pytest.raises(Unavailable, match="below 0"):
        integrated(at(0, 1, 2), at(5, -1, 5), [(0, 2)])


@pytest.mark.parametrize("windows", [[], [(0, 5)], [(-1, 1)]])
def test_what_was_not_read_for_the_whole_window_is_refused(windows: list[tuple[float, float]]) -> None:
    with pytest.raises(Unavailable):
        counted(at(0, 1, 2), at(0, 1, 2), windows)
    with pytest.raises(Unavailable):
        integrated(at(0, 1, 2), at(1, 1, 1), windows)


def test_samples_in_windows() -> None:
    assert samples_in(at(0, 1, 2, 3), [(0.5, 1), (2.5, 9)]).tolist() == [False, True, False, True]
