"""The clock's loop with a scripted clock and a device that works behind its caller's back."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
import torch
from numbered import Numbers, numbered
from torch import Tensor

from escala.execution.feed import Batch
from escala.run.group import Group
from escala.run.loop import Course, Desk, Keeper, Place, Tally, Wish, follow, warm_up
from escala.terms.errors import Interrupted
from escala.terms.events import TrialMoved
from escala.workloads.base import Metric

STEP_S = 0.010


class LateDevice:
    """Steps return at once; their time passes only when somebody waits for the device."""

    together = False
    replays = None

    def __init__(self, step_s: float = STEP_S) -> None:
        self.now = 100.0
        self.queued = 0.0
        self.step_s = step_s
        self.made = 0
        self.bad_step: int | None = None
        self.loads = 0
        self.settled: float | None = None

    def clock(self) -> float:
        return self.now

    def synchronise(self) -> None:
        self.now += self.queued
        self.queued = 0.0

    def step(self, inputs: Tensor, targets: Tensor, count: int, size: int) -> Tensor:
        self.queued += self.step_s
        self.made += 1
        bad = self.bad_step is not None and self.made - 1 >= self.bad_step
        return torch.tensor(math.nan if bad else 2.0 * count)

    def steps(
        self, batches: Iterator[Batch], mark: Callable[[int], None], first: int
    ) -> tuple[list[Tensor], list[int]]:
        losses, counts = list[Tensor](), list[int]()
        for number, batch in enumerate(batches, first + 1):
            losses.append(self.step(*batch))
            counts.append(batch[2])
            mark(number)
        return losses, counts

    def predict(self, inputs: Tensor) -> Tensor:
        self.queued += self.step_s
        return inputs

    def settle(self, share: float, add_up: object) -> None:
        self.settled = share

    def snapshot(self) -> dict[str, object]:
        return {}

    def restore(self, snapshot: object) -> None:
        self.loads += 1
        self.made = 0


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


class Learning(LateDevice):
    """Judges so many rows right as `right` says for each validation, and as its last for all that come after."""

    def __init__(self, right: list[int]) -> None:
        super().__init__()
        self.right = right
        self.judged = -1

    def settle(self, share: float, add_up: object) -> None:
        super().settle(share, add_up)
        self.judged += 1

    def predict(self, inputs: Tensor) -> Tensor:
        self.queued += self.step_s
        right = self.right[min(self.judged, len(self.right) - 1)]
        return torch.where(inputs < right, inputs, -1)


# Of 70 rows: 0.5, 0.8, 0.9 and 0.95 or so.
GROWING = [35, 56, 63, 67]


@pytest.mark.parametrize(("until", "epochs"), [(0.4, 1), (0.8, 2), (0.9, 3), (0.91, 4), (0.99, 6)])
def test_training_ends_with_the_first_validation_that_reaches_the_score(until: float, epochs: int) -> None:
    tally = follow(desk(Learning(GROWING)), replace(course(epochs=6), until=until), steps_per_block=30)
    assert len(tally.epochs) == epochs
    assert len(tally.losses) == epochs * 100
    assert tally.train_s == pytest.approx(epochs * 100 * STEP_S)
    assert tally.validation_s == pytest.approx(epochs * STEP_S)
    assert tally.test_rows == 70  # the test comes all the same, once


def test_without_a_score_to_reach_a_good_one_ends_nothing() -> None:
    assert len(follow(desk(Learning([70])), course(epochs=3), steps_per_block=30).epochs) == 3


@pytest.mark.parametrize(("until", "epochs"), [(0.9, 1), (0.5, 1), (0.49, 4)])
def test_where_lower_is_better_the_score_must_be_as_low(until: float, epochs: int) -> None:
    wrong = replace(course(epochs=4), until=until, metrics=(Metric("wrong", "lower"),))
    tally = follow(desk(Learning([35])), wrong, steps_per_block=30)
    assert len(tally.epochs) == epochs


def test_a_score_that_is_no_number_reaches_nothing() -> None:
    odd = replace(course(epochs=2), until=0.0, metrics=(Metric("odd", of_mean=lambda _: math.nan),))
    assert len(follow(desk(Learning([70])), odd, steps_per_block=30).epochs) == 2


def test_a_training_that_goes_on_ends_where_the_whole_would() -> None:
    whole = replace(course(epochs=6), until=0.8)
    tally = follow(desk(Learning(GROWING)), replace(whole, epochs=1), steps_per_block=30)
    # As a checkpoint keeps it: the steps of the second epoch are done, its validation is not.
    tally.losses += [2.0] * 100
    rest = follow(desk(Learning(GROWING[1:])), whole, 30, tally, Place(1, 100, 2000.0, 1000, 1.0))
    assert (len(rest.epochs), len(rest.losses)) == (2, 200)


class Quiet(LateDevice):
    """The loss and the outputs lie in another seat."""

    def step(self, inputs: Tensor, targets: Tensor, count: int, size: int) -> None:  # type: ignore[override]
        self.made += 1

    def predict(self, inputs: Tensor) -> None:  # type: ignore[override]
        self.made += 1


class Partner(Group):
    """The first of two seats that work on the same rows; the other one tells what comes of it: a loss of 2 a row."""

    def __init__(self, *, tells: bool) -> None:
        super().__init__(0, 2, share=0, shares=1, tells=tells)
        self.other: list[float] = []

    def gather(self, numbers: object) -> list[list[float]]:
        own = [float(number) for number in numbers]  # type: ignore[attr-defined]
        # At the edge of a block: seconds, first bad step, steps, loss of the last step, wish. Of an evaluation:
        # rows judged right, rows judged, their count.
        told = {5: [*own[:3], 2.0, 0.0], 3: [70.0, 70.0, 70.0]}.get(len(own), own)
        none = {5: [*own[:3], 0.0, 0.0], 3: [0.0] * 3}.get(len(own), own)
        self.other = none if self.tells else told
        return [own, self.other]


def test_a_seat_that_does_not_tell_adds_nothing_to_losses_and_scores() -> None:
    for device, told in ((Quiet(), False), (LateDevice(), False), (LateDevice(), True)):
        seat = replace(desk(device), group=Partner(tells=told))
        tally = follow(seat, course(), steps_per_block=50)
        assert tally.losses == [2.0 * told] * 200
        assert [(epoch.loss_sum, epoch.count) for epoch in tally.epochs] == [(2000.0 * told, 1000)] * 2
        assert (tally.test_scores, tally.test_rows) == ((1.0,), 70)


def test_seats_with_the_same_rows_settle_with_a_part_of_their_share_each() -> None:
    device = LateDevice()
    halved = replace(course(), share=lambda size: slice(0, size // 4), batch=8)
    follow(replace(desk(device), group=Partner(tells=True)), halved, steps_per_block=30)
    assert device.settled == 0.125


def test_a_seat_that_is_to_tell_a_loss_must_know_it() -> None:
    with pytest.raises(RuntimeError, match="does not know it"):
        follow(desk(Quiet()), course(), steps_per_block=30)


class OutOfStep(Group):
    """Another seat that reports one step more than this one."""

    def gather(self, numbers: object) -> list[list[float]]:
        own = [float(number) for number in numbers]  # type: ignore[attr-defined]
        other = [*own[:2], own[2] + 1, *own[3:]] if len(own) == 5 else own
        return [own, other]


def test_seats_out_of_step_stop_with_both_counts() -> None:
    device = LateDevice()
    uneven = Desk(device, OutOfStep(0, 2), device.clock, device.synchronise, lambda _: None, lambda _: None)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="rank 0 made 30, rank 1 made 31"):
        follow(uneven, course(), steps_per_block=30)


def test_checkpoints_are_made_at_edges_and_outside_the_clock() -> None:
    device = LateDevice(0.01)
    places = list[tuple[int, int, int, Wish]]()
    wishes = iter([Wish.GO_ON, Wish.SAVE, *[Wish.GO_ON] * 99])

    def save(tally: Tally, place: Place, granted: Wish) -> None:
        places.append((len(tally.losses), place.epoch, place.done, granted))
        device.now += 1000.0

    kept = replace(desk(device), keeper=Keeper(lambda: next(wishes), save))
    tally = follow(kept, course(epochs=2, rows=1000), steps_per_block=4)
    per_epoch = course(epochs=2, rows=1000).steps_per_epoch
    assert places == [
        (8, 0, 8, Wish.SAVE),
        (per_epoch, 0, per_epoch, Wish.GO_ON),
        (2 * per_epoch, 1, per_epoch, Wish.GO_ON),
    ]
    assert tally.train_s == pytest.approx(2 * per_epoch * 0.01, abs=0.01)


def test_spans_of_phases_lie_in_order_and_leave_out_checkpoints() -> None:
    device = LateDevice()

    def save(tally: Tally, place: Place, granted: Wish) -> None:
        device.now += 100.0

    kept = replace(desk(device), keeper=Keeper(lambda: Wish.GO_ON, save))
    tally = follow(kept, course(), 10)
    phases = [(span.phase, span.epoch) for span in tally.spans]
    assert phases == [("train", 1), ("validation", 1), ("train", 2), ("validation", 2), ("test", 2)]
    assert all(one.end <= other.begin for one, other in itertools.pairwise(tally.spans))
    trained = sum(span.end - span.begin for span in tally.spans if span.phase == "train")
    assert trained == pytest.approx(tally.train_s)
    validated = sum(span.end - span.begin for span in tally.spans if span.phase == "validation")
    assert validated == pytest.approx(tally.validation_s)


def test_every_edge_of_a_phase_is_told_at_its_moment() -> None:
    device = LateDevice()
    moments = list[float]()

    def save(tally: Tally, place: Place, granted: Wish) -> None:
        device.now += 100.0

    plain = replace(desk(device), edge=lambda: moments.append(device.now))
    tally = follow(plain, course(), 10)
    assert {moment for span in tally.spans for moment in (span.begin, span.end)} == set(moments)
    moments.clear()
    tally = follow(replace(plain, keeper=Keeper(lambda: Wish.GO_ON, save)), course(), 10)
    assert {moment for span in tally.spans for moment in (span.begin, span.end)} <= set(moments)


def test_a_training_goes_on_in_mid_epoch_with_what_it_had() -> None:
    device = LateDevice(0.01)
    whole = follow(desk(LateDevice(0.01)), course(epochs=2, rows=1000), steps_per_block=4)
    held = list[tuple[Tally, Place]]()

    def save(tally: Tally, place: Place, granted: Wish) -> None:
        if granted is Wish.STOP:
            held.append((tally, place))
            raise Interrupted(keyboard=False)

    wishes = iter([Wish.GO_ON, Wish.STOP])
    with pytest.raises(Interrupted):
        follow(
            replace(desk(device), keeper=Keeper(lambda: next(wishes), save)),
            course(epochs=2, rows=1000),
            steps_per_block=4,
        )
    assert device.made == 8
    tally = follow(desk(device), course(epochs=2, rows=1000), 4, *held[0])
    assert device.made == len(whole.losses)
    assert (len(tally.losses), tally.samples) == (len(whole.losses), whole.samples)
    assert [epoch.order for epoch in tally.epochs] == [epoch.order for epoch in whole.epochs]
    assert [epoch.count for epoch in tally.epochs] == [epoch.count for epoch in whole.epochs]
    assert tally.train_s == pytest.approx(whole.train_s)
