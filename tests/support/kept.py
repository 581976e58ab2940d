"""Checkpoints made by one strategy and gone on with by another, in the processes of the seats.

`python kept.py FOLDER TURN...`: a TURN is PHASE:STRATEGY:WAYS:RANK; those of one process follow one another. In the
phase `make` a seat trains 8 steps without a stop, and once more up to a checkpoint at step 5, in mid-epoch. In the
phase `take` it goes on from every checkpoint for the last 3 steps.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from arithmetic import patterns
from arithmetic_cases import host
from torch import Tensor, nn

from escala.execution.feed import rows_of
from escala.run.assignment import Assignment, Keeping
from escala.run.group import Group, leave, meet
from escala.run.keep import give_back, keeper
from escala.run.loop import Course, Desk, follow
from escala.store.checkpoint import name_of
from escala.strategies import STRATEGIES, strategy
from escala.strategies.base import Learner
from escala.strategies.seating import share_of
from escala.terms.errors import Interrupted
from escala.terms.experiment import ExecutionSpec, StrategyOptions, TrainSpec
from escala.terms.trial import StrategyUse, Trial
from escala.workloads.base import Workload

STOP, STEPS, BATCH, ROWS = 5, 8, 12, 44
SEATINGS = (
    ("single", 1),
    ("ddp", 1),
    ("ddp", 2),
    ("zero1", 2),
    ("fsdp", 2),
    ("hsdp", 4),
    ("layers", 2),
    ("pipeline", 2),
)
# Cut between the two places of the layer that stands twice.
OPTIONS = {"layers": StrategyOptions(split=(3, 3)), "pipeline": StrategyOptions(split=(3, 3), microbatches=2)}


class Network(nn.Module):
    """It has a child called `module`, and tied weights."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.flat = nn.Flatten()
        self.tanh = nn.Tanh()
        self.module = nn.Sequential(nn.Linear(784, width), nn.Tanh())
        self.middle = nn.Linear(width, width, bias=False)
        self.again = self.middle
        self.last = nn.Linear(width, 10)

    def forward(self, images: Tensor) -> Tensor:
        outputs: Tensor = self.last(self.again(self.tanh(self.middle(self.module(self.flat(images))))))
        return outputs


@dataclass(frozen=True)
class Odd(Workload):
    data: ClassVar[tuple[str, ...]] = ()
    width: int = 6

    def model(self) -> nn.Module:
        return Network(self.width)

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        assert isinstance(model, Network)
        return (model.flat, model.module, model.middle, model.tanh, model.again, model.last)

    def inputs(self, raw: Tensor, dtype: torch.dtype) -> Tensor:
        return raw.to(dtype) / 255


def use_of(name: str, ways: int) -> StrategyUse:
    return StrategyUse(name, ways, "cpu", name == "layers", OPTIONS.get(name, StrategyOptions()))


def seated(name: str, ways: int, rank: int, folder: Path, width: int = 6) -> tuple[Assignment, Learner, Course]:
    """One seat of a small training in float64 with momentum; the last batch of an epoch is uneven."""
    use = use_of(name, ways)
    train = TrainSpec(batch=BATCH, steps=STEPS, lr=0.1, momentum=0.9)
    execution = ExecutionSpec("fp64")
    seats = strategy(use).seats(host("cpu"), BATCH)
    trial = Trial("t", "t", "odd", {}, "", None, None, use, execution, train, BATCH, seats, 0, 0)
    work = Odd(width=width)
    torch.manual_seed(2)
    learner = strategy(use).build(work, work.model(), seats[rank], train, execution)
    learner.plan_for(STEPS)
    rows = rows_of(patterns(ROWS), torch.device("cpu"), work, torch.float64)
    share = partial(share_of, seats[rank].rows, BATCH)
    course = Course(rows, None, None, work.metrics, BATCH, share, seed=4, epochs=None, steps=STEPS)
    return Assignment(trial, rank, "", "", 0.0, 0.0, 60.0), learner, course


def desk(learner: Learner, group: Group, steps: list[int]) -> Desk:
    return Desk(learner, group, time.monotonic, lambda: None, lambda _: None, steps.append)


def weights(learner: Learner) -> dict[str, np.ndarray]:
    """Of seats other than rank 0 those that it knows in full."""
    model, shapes = learner.state()["model"], learner.shapes()
    return {name: value.numpy() for name, value in model.items() if value.shape == shapes[name]}


def make(name: str, ways: int, rank: int, folder: Path, group: Group) -> None:
    _, learner, course = seated(name, ways, rank, folder)
    whole = follow(desk(learner, group, []), course, 1)
    np.savez(folder / f"whole-{name}-{ways}-{rank}.npz", losses=np.array(whole.losses), **weights(learner))
    job, learner, course = seated(name, ways, rank, folder)
    steps = list[int]()
    keeping = Keeping(str(folder / f"{name}-{ways}"), 1e9, "")
    # Only one seat wishes to stop; all do.
    hooks = keeper(job, keeping, learner, course, group, 1, None, lambda: rank == 0 and len(steps) >= STOP)
    try:
        follow(replace(desk(learner, group, steps), keeper=hooks), course, 1)
    except Interrupted:
        np.savez(folder / f"kept-{name}-{ways}-{rank}.npz", **weights(learner))


def take(name: str, ways: int, rank: int, folder: Path, group: Group) -> None:
    for other, others in SEATINGS:
        job, learner, course = seated(name, ways, rank, folder)
        begin = folder / f"{other}-{others}" / name_of(STOP)
        found = give_back(job, str(begin), learner, course, group)
        at = weights(learner)
        found.settle_down()
        steps = list[int]()
        tally = follow(desk(learner, group, steps), course, 1, found.tally, found.place)
        np.savez(
            folder / f"taken-{name}-{ways}-{rank}-from-{other}-{others}.npz",
            losses=np.array(tally.losses),
            steps=np.array(steps),
            sums=np.array([epoch.loss_sum for epoch in tally.epochs]),
            **{f"at {key}": value for key, value in at.items()},
            **{f"end {key}": value for key, value in weights(learner).items()},
        )


def main() -> None:
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    for word in sys.argv[2:]:
        phase, name, ways, rank = word.split(":")
        use = use_of(name, int(ways))
        private = folder / f"meet-{phase}-{name}-{ways}"
        private.mkdir(exist_ok=True)
        seats = strategy(use).seats(host("cpu"), BATCH)
        group = meet(seats, int(rank), private, 60.0, needs_group=STRATEGIES[name].grouped)
        {"make": make, "take": take}[phase](name, int(ways), int(rank), folder, group)
        leave()


if __name__ == "__main__":
    main()
