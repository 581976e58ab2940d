from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from escala.execution.schedule import full_rate, is_constant, landmarks, rate, total_steps
from escala.terms.experiment import RateRule, Schedule, TrainSpec

TOTAL = 240
SCHEDULES: tuple[Schedule, ...] = ("constant", "cosine", "step", "one-cycle")


def recipe(schedule: Schedule, warmup: int = 0, lr: float = 0.1) -> TrainSpec:
    return TrainSpec(lr=lr, schedule=schedule, warmup_steps=warmup, decay_steps=50)


@pytest.mark.parametrize(("rule", "expected"), [("none", 0.1), ("linear", 0.4), ("sqrt", 0.2)])
def test_the_rate_follows_the_batch_as_asked(rule: RateRule, expected: float) -> None:
    assert full_rate(TrainSpec(batch=256, lr=0.1, lr_rule=rule, base_batch=64)) == pytest.approx(expected)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_warm_up_rises_evenly_to_the_full_rate(schedule: Schedule) -> None:
    rates = [rate(recipe(schedule, 80), step, TOTAL) for step in range(80)]
    assert rates[0] == pytest.approx(0.1 / 80)
    assert rates[-1] == pytest.approx(0.1)
    steps = [later - sooner for sooner, later in itertools.pairwise(rates)]
    assert steps == pytest.approx([0.1 / 80] * 79)


def test_cosine_is_that_of_pytorch() -> None:
    parameter = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    theirs = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, TOTAL)
    for step in range(TOTAL):
        assert rate(recipe("cosine"), step, TOTAL) == pytest.approx(optimizer.param_groups[0]["lr"], abs=1e-12)
        optimizer.step()
        theirs.step()


def test_step_decays_by_its_factor() -> None:
    found = [rate(recipe("step", 10), step, TOTAL) for step in (10, 59, 60, 109, 110)]
    assert found == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001])


def test_one_cycle_rises_to_the_full_rate_and_ends_near_nothing() -> None:
    rates = [rate(recipe("one-cycle"), step, TOTAL) for step in range(TOTAL)]
    assert max(rates) == pytest.approx(0.1)
    assert rates.index(max(rates)) == 71
    assert 0.1 / 25 <= rates[0] < 0.1 / 20
    assert rates[-1] < 0.1 / 1000


@given(st.sampled_from(SCHEDULES), st.integers(0, 100), st.integers(1, 500), st.integers(0, 600))
def test_every_rate_is_within_its_bounds(schedule: Schedule, warmup: int, total: int, step: int) -> None:
    assert 0 <= rate(recipe(schedule, warmup), step, total) <= 0.1 * (1 + 1e-12)


def test_the_curve_over_samples_is_the_same_for_any_number_of_seats() -> None:
    # 3 epochs of 800 samples, batch 10: 240 steps, whether one process sees all rows of a batch or four a quarter.
    train = TrainSpec(batch=10, epochs=3, lr=0.1, schedule="cosine", warmup_steps=80)
    total = total_steps(train, 800)
    assert total == 240
    told = landmarks(train, total)
    assert told["end of warm-up"] == pytest.approx(0.1)
    assert told["last"] < 0.1 / 1000
    # Twice the batch is half the steps: the schedule still ends with the training.
    wide = TrainSpec(batch=20, epochs=3, lr=0.1, schedule="cosine", warmup_steps=40)
    assert landmarks(wide, total_steps(wide, 800))["last"] < 0.1 / 1000


def test_a_short_last_batch_is_a_step() -> None:
    assert total_steps(TrainSpec(batch=64, epochs=2), 65) == 4
    assert total_steps(TrainSpec(batch=64, steps=7), 65) == 7


def test_only_a_plain_recipe_is_constant() -> None:
    assert is_constant(TrainSpec())
    assert not is_constant(TrainSpec(warmup_steps=1))
    assert not is_constant(recipe("cosine"))
    assert landmarks(TrainSpec(lr=0.3), 10) == {"first": 0.3, "last": 0.3}
