"""Shares over orders, against the definition by all orders."""

from __future__ import annotations

from itertools import chain, combinations, permutations
from math import factorial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escala.analyse.shapley import Weights, interaction_weights, share_weights

NAMES = ("a", "b", "c", "d")


def powerset(names: tuple[str, ...]) -> list[frozenset[str]]:
    return [frozenset(some) for some in chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))]


def value(weights: Weights, values: dict[frozenset[str], float]) -> float:
    return sum(weight * values[subset] for subset, weight in weights.items())


def by_definition(names: tuple[str, ...], values: dict[frozenset[str], float]) -> tuple[int, dict[str, float]]:
    """The mean of what each factor adds, over every order whose steps are all there."""
    sums, orders = dict.fromkeys(names, 0.0), 0
    for order in permutations(names):
        steps = [frozenset(order[:count]) for count in range(len(order) + 1)]
        if all(step in values for step in steps):
            orders += 1
            for name, below, above in zip(order, steps, steps[1:], strict=False):
                sums[name] += values[above] - values[below]
    return orders, {name: total / orders for name, total in sums.items()} if orders else {}


@given(
    st.integers(min_value=1, max_value=4),
    st.lists(st.floats(min_value=-10, max_value=10), min_size=16, max_size=16),
    st.sets(st.integers(min_value=0, max_value=15)),
)
@settings(deadline=None)
def test_shares_are_the_mean_over_the_measured_orders(count: int, drawn: list[float], absent: set[int]) -> None:
    names = NAMES[:count]
    values = {one: drawn[place] for place, one in enumerate(powerset(names)) if place not in absent}
    orders, weights = share_weights(names, values)
    wanted_orders, wanted = by_definition(names, values)
    assert orders == wanted_orders
    assert {name: value(of, values) for name, of in weights.items()} == pytest.approx(wanted, abs=1e-9)
    if orders:
        whole = values[frozenset(names)] - values[frozenset()]
        assert sum(value(of, values) for of in weights.values()) == pytest.approx(whole, abs=1e-9)


def test_everything_measured_is_every_order() -> None:
    for count in range(1, 5):
        assert share_weights(NAMES[:count], powerset(NAMES[:count]))[0] == factorial(count)


def test_a_long_ladder_has_one_order() -> None:
    names = tuple(f"f{number}" for number in range(12))
    orders, weights = share_weights(names, [frozenset(names[:count]) for count in range(13)])
    assert orders == 1
    assert weights["f3"] == {frozenset(names[:4]): 1.0, frozenset(names[:3]): -1.0}


@given(st.dictionaries(st.sampled_from(NAMES), st.floats(min_value=-3, max_value=3), min_size=4), st.floats(-3, 3))
def test_a_planted_interaction_is_found_and_no_other(alone: dict[str, float], together: float) -> None:
    values = {
        one: sum(alone[name] for name in one) + (together if {"a", "b"} <= one else 0) for one in powerset(NAMES)
    }
    for one, other in combinations(NAMES, 2):
        found = value(interaction_weights(NAMES, one, other), values)
        assert found == pytest.approx(together if (one, other) == ("a", "b") else 0.0, abs=1e-9)
