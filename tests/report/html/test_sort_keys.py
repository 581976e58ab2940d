"""What the cells of a table are sorted by."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.analyse.row import Interval
from escala.analyse.wording import interval_text, joules, number, percent, seconds, size
from escala.report.html.keys import sort_key

FIGURES = st.floats(1e-6, 1e11)
CLOSE = 6e-3
"""Cells have three digits."""


def around(value: float) -> Interval:
    return Interval(value, value * 0.9, value * 1.1, (value * 0.9, value, value * 1.1))


@given(FIGURES)
def test_figures_are_read_back_from_their_cells(value: float) -> None:
    close = pytest.approx(value, rel=CLOSE, abs=1e-9)
    assert sort_key(number(value)) == close
    assert sort_key(interval_text(around(value))) == close
    assert sort_key(joules(around(value))) == close
    assert sort_key(joules(around(value)) + " est.") == close
    assert sort_key(seconds(value)) == close
    assert sort_key(percent(value / 100)) == close


@given(st.integers(2**20, 2**45))
def test_sizes_are_told_apart_by_their_units(count: int) -> None:
    assert sort_key(size(count)) == pytest.approx(count, rel=CLOSE)


@pytest.mark.parametrize(
    ("cell", "key"),
    [
        ("never", inf),
        ("", None),
        ("not measured", None),
        ("-", None),
        (",", None),
        ("3 of 5", 3.0),
        ("1,024 (512 + 512)", 1024.0),
        ("+1.30 [0.20, 2.00]", 1.3),
        ("-0.0012", -0.0012),
        ("8.48e+06 J", 8.48e6),
    ],
)
def test_cells_that_hold_something_else(cell: str, key: float | None) -> None:
    assert sort_key(cell) == key
