"""Dropout by row in a learner: the same masks after a resumption, and none that go by the seat unnoticed."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from escala.strategies import strategy
from escala.strategies.learner import Learner
from escala.terms.errors import EscalaError
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.trial import Seat, StrategyUse
from escala.workloads import workload
from escala.workloads.user import OwnModel

BATCH = 16


def learner(random: str, seed: int = 0, network: str = "attending:network") -> Learner:
    work = workload(network, {"dropout": 0.3})
    torch.manual_seed(0)
    execution = ExecutionSpec("fp64", random=random)  # type: ignore[arg-type]
    seat = Seat(0, 0, ("cpu",), (0, BATCH), 1)
    train = TrainSpec(batch=BATCH, momentum=0.9, seed=seed)
    return strategy(StrategyUse("single", 1, "cpu")).build(work, work.model(), seat, train, execution)


def losses(made: Learner, steps: range, generator: int) -> list[float]:
    torch.manual_seed(generator)
    found = []
    for step in steps:
        drawn = torch.Generator().manual_seed(step)
        rows = torch.randn(BATCH, 1, 28, 28, generator=drawn, dtype=torch.float64)
        found.append(made.step(rows, torch.arange(BATCH) % 10, BATCH, BATCH).item())
    return found


def test_masks_go_on_after_a_resumption_without_any_state_of_a_generator() -> None:
    twin = losses(learner("row"), range(6), generator=1)
    first = learner("row")
    begun = losses(first, range(2), generator=2)
    second = learner("row")
    # As warm-up does it: steps that are taken back.
    losses(second, range(3), generator=3)
    second.load(first.state())
    assert begun + losses(second, range(2, 6), generator=4) == twin
    assert losses(learner("row", seed=1), range(6), generator=1) != twin


def test_by_seat_they_come_from_the_seats_generator() -> None:
    assert losses(learner("seat"), range(2), 1) == losses(learner("seat", seed=1), range(2), 1)
    assert losses(learner("seat"), range(2), 1) != losses(learner("seat"), range(2), 2)


def test_a_network_that_draws_by_itself_is_refused_in_its_first_step() -> None:
    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(784, 10)

        def forward(self, images: Tensor) -> Tensor:
            outputs: Tensor = self.layer(nn.functional.dropout(images.flatten(1), 0.1, self.training))
            return outputs

    work = OwnModel(Functional, ())
    for random in ("row", None):
        execution = ExecutionSpec("fp64", batchnorm="ghost:4", random=random)  # type: ignore[arg-type]
        made = strategy(StrategyUse("single", 1, "cpu")).build(
            work, work.model(), Seat(0, 0, ("cpu",), (0, BATCH), 1), TrainSpec(batch=BATCH), execution
        )
        with pytest.raises(EscalaError, match=r'MODEL-RANDOM.*no layer can stand in for.*random = "seat"'):
            losses(made, range(1), 0)
    seat = ExecutionSpec("fp64", batchnorm="ghost:4", random="seat")
    made = strategy(StrategyUse("single", 1, "cpu")).build(
        work, work.model(), Seat(0, 0, ("cpu",), (0, BATCH), 1), TrainSpec(batch=BATCH), seat
    )
    assert losses(made, range(1), 0)
