"""Grouping of batches into graphs, and what is copied to and from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from escala.execution.feed import Batch
from escala.execution.replay import MOST_SHAPES, WARM_STEPS, WARM_STEPS_LATER, Replays
from escala.terms.errors import Unfit


class Plays:
    """A recorder whose graphs are the work itself."""

    def __init__(self) -> None:
        self.recorded = 0
        self.recording = False

    def aside(self) -> AbstractContextManager[object]:
        return nullcontext()

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        self.recorded += 1
        return work


class Sums:
    """Steps whose loss is the sum of a batch times its seed, and that count how they are called."""

    def __init__(self) -> None:
        self.made = self.gone = self.held = 0
        self.counts = list[int]()

    def record_step(self, inputs: Tensor, targets: Tensor, count: int, size: int, seed: Tensor) -> Tensor:
        self.made += 1
        self.counts.append(count)
        return (inputs.sum() + targets.sum()) * seed

    def seed_of(self, count: int) -> float:
        return float(count)

    def hold(self) -> Callable[[], None]:
        def put_back() -> None:
            self.held += 1

        return put_back

    def went(self, steps: int) -> None:
        self.gone += steps


def batch(rows: int, value: float, count: int | None = None) -> Batch:
    return torch.full((rows, 2), value), torch.full((rows,), value), rows if count is None else count, rows


def expected(batches: list[Batch]) -> list[float]:
    return [float((inputs.sum() + targets.sum()) * count) for inputs, targets, count, _ in batches]


def made(unroll: int) -> tuple[Replays, Plays, Sums]:
    recorder, steps = Plays(), Sums()
    return Replays(recorder, unroll, steps, torch.float64), recorder, steps


def lines(sizes: list[int]) -> list[Batch]:
    return [batch(size, float(place)) for place, size in enumerate(sizes)]


@given(st.integers(1, 5), st.lists(st.integers(1, 3), max_size=20))
def test_every_batch_is_played_once_in_its_order(unroll: int, sizes: list[int]) -> None:
    replays, _, steps = made(unroll)
    marks = list[int]()
    batches = lines(sizes)
    losses, counts = replays.follow(iter(batches), marks.append, 100)
    assert (torch.hstack(losses).tolist() if losses else []) == expected(batches)
    assert counts == sizes
    assert steps.gone == len(sizes)
    assert marks == sorted(set(marks))
    assert marks[-1:] == ([100 + len(sizes)] if sizes else [])


def test_equal_batches_go_together_and_the_rest_one_by_one() -> None:
    replays, recorder, _ = made(4)
    marks = list[int]()
    losses, _ = replays.follow(iter(lines([3] * 9 + [2])), marks.append, 0)
    assert [loss.shape for loss in losses] == [(4,), (4,), (1,), (1,)]
    assert marks == [4, 8, 9, 10]
    assert (recorder.recorded, replays.graphs) == (3, 3)
    replays.follow(iter(lines([3] * 9 + [2])), marks.append, 0)
    assert recorder.recorded == 3


def test_earlier_losses_stay_when_their_place_is_used_again() -> None:
    replays, _, _ = made(1)
    (first,), _ = replays.follow(iter([batch(2, 1.0)]), lambda _: None, 0)
    replays.follow(iter([batch(2, 5.0)]), lambda _: None, 0)
    assert first.tolist() == [12.0]


def test_counts_may_vary_within_one_graph() -> None:
    replays, recorder, steps = made(2)
    batches = [batch(2, 1.0, count) for count in (5, 7, 7, 5, 5, 5)]
    losses, counts = replays.follow(iter(batches), lambda _: None, 0)
    assert torch.hstack(losses).tolist() == expected(batches)
    assert counts == [5, 7, 7, 5, 5, 5]
    assert recorder.recorded == 1
    assert set(steps.counts) == {5}, "only whether anything counts may be read where a step is recorded"


def test_nothing_that_counts_is_a_shape_of_its_own() -> None:
    replays, recorder, _ = made(1)
    replays.follow(iter([batch(1, 1.0, 0), batch(1, 1.0, 4)]), lambda _: None, 0)
    assert recorder.recorded == 2


def test_before_the_first_recording_of_a_shape_some_steps_are_tried_and_forgotten() -> None:
    replays, _, steps = made(4)
    replays.prepare(batch(3, 1.0))
    assert (steps.made, steps.gone, steps.held) == (WARM_STEPS, 0, 2)
    replays.prepare(batch(2, 1.0))
    assert steps.made == WARM_STEPS + WARM_STEPS_LATER
    assert replays.graphs == 4
    replays.prepare(batch(2, 1.0))
    assert replays.graphs == 4


def test_one_tensor_for_both_is_copied_once() -> None:
    replays, _, _ = made(1)
    places = torch.tensor([1.0, 2.0])
    losses, _ = replays.follow(iter([(places, places, 1, 2), (places * 2,) * 2 + (1, 2)]), lambda _: None, 0)
    assert torch.hstack(losses).tolist() == [6.0, 12.0]


def test_too_many_shapes_do_not_fit() -> None:
    def longer() -> Iterator[Batch]:
        for rows in range(1, MOST_SHAPES + 1):
            yield batch(rows, 1.0)

    replays, _, _ = made(1)
    replays.follow(longer(), lambda _: None, 0)
    replays.follow(longer(), lambda _: None, 0)
    with pytest.raises(Unfit, match=f"more than {MOST_SHAPES}.*pack or pad them to one length"):
        replays.follow(iter([batch(MOST_SHAPES + 1, 1.0)]), lambda _: None, 0)


@pytest.mark.parametrize(("step_s", "together"), [(2e-6, 8), (75e-6, 8), (0.0004, 2), (0.0009, 1), (0.008, 1)])
def test_as_many_short_steps_go_together_as_fill_a_graph(step_s: float, together: int) -> None:
    recorder, steps = Plays(), Sums()
    replays = Replays(recorder, None, steps, torch.float64)
    assert replays.open
    losses, _ = replays.follow(iter(lines([3] * 2)), lambda _: None, 0)
    assert [len(loss) for loss in losses] == [1, 1]
    assert replays.settle(step_s) == together
    assert not replays.open
    losses, _ = replays.follow(iter(lines([3] * 9)), lambda _: None, 0)
    assert len(losses[0]) == together


def test_forgotten_graphs_are_recorded_anew() -> None:
    replays, recorder, _ = made(1)
    replays.follow(iter([batch(2, 1.0)]), lambda _: None, 0)
    replays.forget()
    replays.follow(iter([batch(2, 1.0)]), lambda _: None, 0)
    assert recorder.recorded == 2
