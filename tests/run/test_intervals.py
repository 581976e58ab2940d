"""Sets of stretches of time, against the same on a grid."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from escala.run.intervals import Stretch, joined, length, within, without

STRETCHES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=8)


def cells(stretches: list[Stretch]) -> set[int]:
    """The unit cells that lie in any of them."""
    return {cell for begin, end in stretches for cell in range(int(begin), int(end))}


@given(STRETCHES)
def test_joined_is_the_same_time_in_order_without_touching(stretches: list[Stretch]) -> None:
    found = joined(stretches)
    assert cells(found) == cells(stretches)
    assert all(one[1] < other[0] for one, other in itertools.pairwise(found))
    assert length(found) == len(cells(stretches))


@given(STRETCHES, STRETCHES)
def test_without_takes_away_what_lies_in_the_others(stretches: list[Stretch], others: list[Stretch]) -> None:
    found = without(stretches, others)
    assert cells(found) == cells(stretches) - cells(others)
    assert length(found) == len(cells(found))


@given(STRETCHES, st.integers(0, 20), st.integers(0, 15))
def test_within_keeps_what_lies_in_the_window(stretches: list[Stretch], begin: int, span: int) -> None:
    assert cells(within(stretches, (begin, begin + span))) == cells(stretches) & set(range(begin, begin + span))
