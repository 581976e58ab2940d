"""One denominator for a whole global batch, and for a whole epoch, where what counts is unequal."""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import telling
import torch
from torch import Tensor, nn

from escala.data.base import Split
from escala.execution.feed import rows_of
from escala.execution.order import order_of
from escala.run.group import Group
from escala.run.loop import Course, Desk, follow
from escala.strategies import strategy
from escala.strategies.base import PLAIN
from escala.terms.experiment import TrainSpec
from escala.terms.trial import Seat, StrategyUse
from escala.workloads.base import Workload


def told(folder: Path, name: str, ways: int, microbatch: int) -> list[dict[str, np.ndarray]]:
    script = Path(telling.__file__)
    words = [[name, str(ways), str(rank), str(folder), str(microbatch)] for rank in range(ways)]
    seats = [subprocess.Popen([sys.executable, str(script), *one]) for one in words]
    assert [seat.wait(120) for seat in seats] == [0] * ways
    return [dict(np.load(folder / f"{rank}.npz")) for rank in range(ways)]


def expected() -> tuple[float, dict[str, np.ndarray]]:
    """As the mean over the ten tokens, with nothing of ours but the network."""
    lm = telling.work()
    torch.manual_seed(5)
    model = lm.model().double()
    tokens = torch.from_numpy(telling.split().inputs).long()
    logits = model(tokens[:, :-1])
    pairs = [(logits[row, : telling.COUNTS[row]], tokens[row, 1 : 1 + telling.COUNTS[row]]) for row in (0, 1)]
    loss = nn.functional.cross_entropy(*(torch.cat(parts) for parts in zip(*pairs, strict=True)))
    loss.backward()
    return loss.item(), {key: value.grad.numpy() for key, value in model.named_parameters() if value.grad is not None}


@pytest.mark.parametrize(
    ("name", "ways", "microbatch"),
    [("single", 1, 0), ("single", 1, 1), ("ddp", 2, 0), ("pipeline", 2, 0), ("pipeline", 2, 1)],
)
def test_one_and_nine_tokens_are_one_batch_of_ten(tmp_path: Path, name: str, ways: int, microbatch: int) -> None:
    seats = told(tmp_path, name, ways, microbatch)
    loss, gradient = expected()
    assert [int(seat["count"]) for seat in seats] == [10] * ways
    assert sum(float(seat["loss"]) for seat in seats) == pytest.approx(loss, rel=1e-12)
    # The head has its weight in common with the embedding, and where it is another seat's it goes by its own name.
    known = gradient | {"3.weight": gradient["0.tokens.weight"]}
    assert {key for seat in seats for key in seat} - {"3.weight"} == gradient.keys() | {"loss", "count"}
    for seat in seats:
        assert name == "pipeline" or seat.keys() == gradient.keys() | {"loss", "count"}
        for key in seat.keys() - {"loss", "count"}:
            value = known[key]
            np.testing.assert_allclose(seat[key], value, rtol=1e-9, atol=1e-14, err_msg=key)


@dataclass(frozen=True)
class Given(Workload):
    """A row's loss is its target, whatever the network says."""

    def model(self) -> nn.Module:
        return nn.Linear(1, 1)

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        return (model,)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return targets.sum() + 0 * outputs.sum()


def test_an_epochs_loss_is_a_sum_over_a_count() -> None:
    """Four losses of 0 in a batch and one of 1 in the last: 0.2, where the mean of the batches' means is 0.5."""
    targets = np.zeros(5, np.float32)
    targets[order_of(0, 0, 5)[4]] = 1
    work = Given()
    seat = Seat(0, 0, ("cpu",), (0, 4), 1)
    learner = strategy(StrategyUse("single", 1, "cpu")).build(work, work.model(), seat, TrainSpec(batch=4), PLAIN)
    rows = rows_of(Split(np.zeros((5, 1), np.float32), targets), torch.device("cpu"), work, torch.float32)
    course = Course(rows, None, None, work.metrics, 4, lambda size: slice(0, size), seed=0, epochs=1, steps=None)
    desk = Desk(learner, Group(0, 1), time.monotonic, lambda: None, lambda _: None, lambda _: None)
    tally = follow(desk, course, steps_per_block=1)
    (epoch,) = tally.epochs
    assert (epoch.loss_sum, epoch.count) == (1.0, 5)
    assert epoch.loss_sum / epoch.count == 0.2
    assert tally.losses == [0.0, 1.0]
