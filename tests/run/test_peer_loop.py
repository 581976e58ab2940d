"""Escala's clock at the edges of somebody else's epochs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from escala.execution.order import digest_of, order_of
from escala.peers.base import Floats
from escala.run.assignment import Divergence, Span
from escala.run.peer_loop import Clocked, Diverged, Part
from escala.terms.events import TrialMoved

ORDERS = [order_of(1, epoch, 10) for epoch in range(2)]


def score(outputs: Floats) -> tuple[float, ...]:
    return (float(outputs.mean()),)


def clocked() -> tuple[Clocked, list[str], list[TrialMoved], list[int]]:
    """Edges whose clock tells how often it was read, with what they did in order."""
    did: list[str] = []
    numbers = itertools.count()

    def clock() -> float:
        did.append("clock")
        return float(next(numbers))

    said: list[TrialMoved] = []
    marks: list[int] = []
    part = Part(np.zeros((3, 1)), score)
    wait = lambda: did.append("wait")  # noqa: E731
    return Clocked(ORDERS, 4, part, wait, said.append, marks.append, clock), did, said, marks


def test_the_clock_is_read_once_the_device_is_idle() -> None:
    edges, did, said, marks = clocked()
    edges.training_begins()
    edges.training_ended([3.0, 2.0, 1.0])
    edges.validation_begins()
    edges.validated(np.full((3, 1), 0.25))
    edges.training_begins()
    edges.training_ended(np.array([1.0, 1.0, 1.0]))
    assert did == ["wait", "clock"] * 3 + ["clock"] + ["wait", "clock"] * 2
    assert edges.spans == [Span("train", 1, 0.0, 1.0), Span("validation", 1, 2.0, 3.0), Span("train", 2, 4.0, 5.0)]
    first, second = edges.epochs
    # Batches of 4, 4 and 2 rows.
    assert (first.train_s, first.loss_sum, first.count) == (1.0, 3.0 * 4 + 2.0 * 4 + 1.0 * 2, 10)
    assert (first.validation_s, first.score, second.validation_s) == (1.0, 0.25, None)
    assert [first.order, second.order] == [digest_of(order) for order in ORDERS]
    assert edges.losses == [3.0, 2.0, 1.0, 1.0, 1.0, 1.0]
    assert marks == [3, 3, 6]
    assert [(moved.phase, moved.epoch, moved.step) for moved in said] == [
        ("train", 1, 3),
        ("validation", 1, 3),
        ("train", 2, 6),
    ]
    assert said[0].samples_per_second == 10


def test_a_loss_that_is_not_finite_ends_the_training() -> None:
    edges, *_ = clocked()
    edges.training_begins()
    edges.training_ended([3.0, 2.0, 1.0])
    edges.training_begins()
    with pytest.raises(Diverged):
        edges.training_ended([1.0, math.inf, 4.0])
    assert edges.diverged == Divergence(4, 0)
    assert edges.losses == [3.0, 2.0, 1.0, 1.0, math.inf]


def test_a_peer_that_made_other_steps_is_caught() -> None:
    edges, *_ = clocked()
    edges.training_begins()
    with pytest.raises(RuntimeError, match="2 steps in an epoch of 3"):
        edges.training_ended([1.0, 1.0])
