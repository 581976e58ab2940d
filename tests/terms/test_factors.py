"""Differences of two rows as factors."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from escala.terms.factors import factors, mixed, taken_by

BEFORE = {
    "strategy.name": "single",
    "strategy.ways": 1,
    "peer": None,
    "execution.precision": "fp32",
    "execution.feed": "memory",
    "execution.workers": 0,
    "execution.compression": "none",
    "execution.new_key": 1,
    "train.batch": 16,
    "train.lr": 0.1,
    "train.epochs": 1,
}
AFTER = {
    **BEFORE,
    "strategy.name": "ddp",
    "strategy.ways": 4,
    "execution.compression": "fp16",
    "execution.precision": "bf16",
    "execution.feed": "host",
    "execution.workers": 4,
    "execution.new_key": 2,
    "train.batch": 64,
    "train.lr": 0.4,
}


def test_keys_that_go_together_are_one_factor_and_unknown_ones_their_own() -> None:
    assert factors(BEFORE, AFTER) == {
        "devices": ("strategy.name", "strategy.ways", "execution.compression"),
        "precision": ("execution.precision",),
        "batch": ("train.batch", "train.lr"),
        "feed": ("execution.feed", "execution.workers"),
        "new key": ("execution.new_key",),
    }


def test_a_rate_without_another_batch_is_called_so() -> None:
    assert list(factors(BEFORE, {**BEFORE, "train.lr": 0.4})) == ["rate"]


def test_a_budget_is_no_factor() -> None:
    assert factors(BEFORE, {**BEFORE, "train.epochs": 2}) == {}


@given(st.sets(st.sampled_from(sorted(factors(BEFORE, AFTER)))))
def test_a_mixture_is_known_by_what_it_took(taken: set[str]) -> None:
    of = factors(BEFORE, AFTER)
    row = mixed(BEFORE, AFTER, taken, of)
    assert taken_by(row, BEFORE, AFTER, of) == taken
    assert taken_by({**row, "train.lr": 9.0}, BEFORE, AFTER, of) is None
    assert taken_by({**row, "train.epochs": 2}, BEFORE, AFTER, of) is None


def test_half_a_factor_is_no_mixture() -> None:
    of = factors(BEFORE, AFTER)
    for key in of["feed"]:
        assert taken_by({**BEFORE, key: AFTER[key]}, BEFORE, AFTER, of) is None
    assert len(list(combinations(of, 2))) == 10
