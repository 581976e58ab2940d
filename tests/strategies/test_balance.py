"""Where a row of parts is cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.strategies.balance import balanced, check_stages, in_words, spans
from escala.terms.errors import Unfit


def every_cut(many: int, stages: int) -> list[tuple[int, ...]]:
    return [
        tuple(b - a for a, b in itertools.pairwise((0, *inner, many)))
        for inner in itertools.combinations(range(1, many), stages - 1)
    ]


@given(st.lists(st.integers(0, 50), min_size=1, max_size=9), st.integers(1, 5))
def test_no_cut_has_a_cheaper_dearest_stage(costs: list[int], stages: int) -> None:
    if len(costs) < stages:
        return

    def dearest(sizes: tuple[int, ...]) -> int:
        return max(sum(costs[number] for number in span) for span in spans(sizes))

    found = balanced(costs, stages)
    assert len(found) == stages
    assert min(found) >= 1
    assert sum(found) == len(costs)
    assert dearest(found) == min(dearest(sizes) for sizes in every_cut(len(costs), stages))


def test_what_does_not_decide_is_even_too() -> None:
    # The dear part alone decides; the others are still shared out.
    assert balanced([9, 1, 1, 1, 1], 3) == (1, 2, 2)


def test_in_words() -> None:
    assert in_words((3, 1, 2)) == "0-2 | 3 | 4-5"


def test_a_network_has_as_many_blocks_as_stages_or_more() -> None:
    check_stages(3, 3)
    with pytest.raises(Unfit, match="4 stages of a network with 3 blocks; 3 is the most"):
        check_stages(4, 3)
