"""The clock's loop with a scripted clock and a device that works behind its caller's back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from numbered import Numbers, numbered
from torch import Tensor

from escala.run.group import Group
from escala.run.loop import Course, Desk, follow, warm_up
from escala.terms.events import TrialMoved

STEP_S = 0.010


class LateDevice:
    """Steps return at once; their time passes only when somebody waits for the device."""

    def __init__(self, step_s: float = STEP_S) -> None:
        self.now = 100.0
        self.queued = 0.0
        self.step_s = step_s
        self.steps = 0
        self.bad_step: int | None = None
        self.loads = 0
        self.settled: float | None = None

    def clock(self) -> float:
        return self.now

    def synchronise(self) -> None:
        self.now += self.queued
        self.queued = 0.0

    def step(self, inputs: Tensor, targets: Tensor, count: int) -> Tensor:
        self.queued += self.step_s
        self.steps += 1
        bad = self.bad_step is not None and self.steps - 1 >= self.bad_step
        return torch.tensor(math.nan if bad else 2.0 * count)

    def predict(self, inputs: Tensor) -> Tensor:
        self.queued += self.step_s
        return inputs

    def settle(self, share: float, add_up: object) -> None:
        self.settled = share

    def state(self) -> dict[str, object]:
        return {}

    def load(self, state: object) -> None:
        self.loads += 1
        self.steps = 0


def desk(device: LateDevice, say: Callable[[TrialMoved], None] = lambda _: None, *, waits: bool = True) -> Desk:
    return Desk(
        learner=device,  # type: ignore[arg-type]
        group=Group(0, 1),
        clock=device.clock,
        synchronise=device.synchronise if waits else lambda: None,
        say=say,
        mark=lambda _: None,
    )


def course(rows: int = 1000, batch: int = 10, epochs: int | None = 2, steps: int | None = None) -> Course:
    few = numbered(70)
    return Course(
        training=numbered(rows),
        validation=few,
        test=few,
        metrics=Numbers.metrics,
        batch=batch,
        share=lambda size: slice(0, size),
        seed=0,
        epochs=epochs,
        steps=steps,
    )


def test_queued_work_is_inside_the_window_that_queued_it() -> None:
    device = LateDevice()
    tally = follow(desk(device), course(), steps_per_block=30)
    assert tally.train_s == pytest.approx(200 * STEP_S)
    assert tally.block_seconds == pytest.approx([30 * STEP_S] * 6)
    assert tally.validation_s == pytest.approx(2 * STEP_S)
    assert tally.test_s == pytest.approx(STEP_S)


def test_without_the_hook_times_would_be_impossibly_small() -> None:
    device = LateDevice()
    tally = follow(desk(device, waits=False), course(), steps_per_block=30)
    assert tally.train_s == 0.0  # what the test above would see if the hook were removed


def test_warm_up_makes_blocks_long_enough_and_puts_the_learner_back() -> None:
    device = LateDevice()
    warmth = warm_up(desk(device), course(), block_s=0.25)
    assert warmth.settled
    assert warmth.steps_per_block * STEP_S >= 0.25
    assert device.loads == 1


def test_a_block_is_never_longer_than_an_epoch() -> None:
    warmth = warm_up(desk(LateDevice(0.0001)), course(), block_s=0.25)
    assert warmth.steps_per_block == 100
    assert warmth.settled


def test_warm_up_ends_at_its_limit_when_times_keep_falling() -> None:
    device = LateDevice(1.0)

    def restless() -> None:
        device.step_s *= 0.9
        device.now += device.queued
        device.queued = 0.0

    unsettled = Desk(device, Group(0, 1), device.clock, restless, lambda _: None, lambda _: None)  # type: ignore[arg-type]
    assert not warm_up(unsettled, course(), block_s=0.25).settled


def test_a_budget_in_steps_makes_exactly_so_many_and_evaluates_nothing() -> None:
    tally = follow(desk(LateDevice()), course(epochs=None, steps=130), steps_per_block=30)
    assert len(tally.losses) == 130
    assert tally.samples == 1300
    assert (tally.validation_s, tally.test_s, tally.test_scores) == (None, None, ())
    assert len({epoch.order for epoch in tally.epochs}) == 2


def test_an_uneven_last_batch_is_counted_as_what_it_is() -> None:
    tally = follow(desk(LateDevice()), course(rows=1003), steps_per_block=30)
    assert len(tally.losses) == 2 * 101
    assert tally.samples == 2 * 1003
    assert [epoch.count for epoch in tally.epochs] == [1003, 1003]
    assert tally.losses == pytest.approx([2.0] * 202)
    assert [epoch.loss_sum for epoch in tally.epochs] == pytest.approx([2006.0] * 2)


def test_a_loss_that_is_not_finite_ends_the_trial_at_its_step() -> None:
    device = LateDevice()
    device.bad_step = 47
    tally = follow(desk(device), course(), steps_per_block=30)
    assert tally.diverged is not None
    assert (tally.diverged.step, tally.diverged.rank) == (47, 0)
    assert len(tally.losses) == 48
    assert math.isnan(tally.losses[-1])
    assert tally.test_scores == ()


def test_evaluation_counts_every_row_once() -> None:
    tally = follow(desk(LateDevice()), course(), steps_per_block=30)
    assert (tally.test_scores, tally.test_rows) == ((1.0,), 70)


def test_seats_settle_on_one_network_before_they_judge() -> None:
    device = LateDevice()
    follow(desk(device), replace(course(), share=lambda size: slice(0, size // 4), batch=8), steps_per_block=30)
    assert device.settled == 0.25


def test_progress_is_told_at_edges() -> None:
    told = list[TrialMoved]()
    follow(desk(LateDevice(), told.append), course(), steps_per_block=50)
    train = [moved for moved in told if moved.phase == "train"]
    assert [(moved.epoch, moved.step, moved.steps) for moved in train] == [
        (1, 50, 200),
        (1, 100, 200),
        (2, 150, 200),
        (2, 200, 200),
    ]
    assert train[0].samples_per_second == pytest.approx(10 / STEP_S)
    assert train[0].loss == pytest.approx(2.0)
    assert [moved.phase for moved in told if moved.phase != "train"] == ["validation", "validation", "test"]


class OutOfStep(Group):
    """Another seat that reports one step more than this one."""

    def gather(self, numbers: object) -> list[list[float]]:
        own = [float(number) for number in numbers]  # type: ignore[attr-defined]
        other = [*own[:2], own[2] + 1, own[3]] if len(own) == 4 else own
        return [own, other]


def test_seats_out_of_step_stop_with_both_counts() -> None:
    device = LateDevice()
    uneven = Desk(device, OutOfStep(0, 2), device.clock, device.synchronise, lambda _: None, lambda _: None)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="rank 0 made 30, rank 1 made 31"):
        follow(uneven, course(), steps_per_block=30)
