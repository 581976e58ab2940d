"""A peer's loss curves beside those of `single`, in a process of its own: `python peering.py PEER WAYS FOLDER`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from escala.data.base import Split
from escala.execution.feed import rows_of, training_batches
from escala.execution.order import Order, order_of
from escala.peers import load
from escala.peers.base import Floats, Peer, Task
from escala.strategies import strategy
from escala.strategies.seating import share_of
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import StrategyUse
from escala.workloads.base import Workload, pixels

SEED = 3
BATCH = 50


@dataclass(frozen=True)
class Case:
    """A small network, its rows and recipe; 200 steps and more with a short last batch."""

    momentum: float = 0.0
    lr: float = 0.3
    rows: int = 1003
    """Twenty batches and a last one of three rows."""
    epochs: int = 11
    images: bool = False
    dropout: float = 0.0

    def fits(self, ways: int) -> bool:
        """Whether every batch divides by the devices."""
        return self.rows % BATCH % ways == 0


CASES = {
    "dense": Case(),
    "dense with momentum": Case(momentum=0.9, lr=0.03),
    # The larger the rate, the more a difference of rounding grows where it changes which pixel is the largest.
    "convolutions": Case(images=True, lr=0.05, epochs=15),
    "no rest": Case(rows=1000),
    "no rest, momentum": Case(rows=1000, momentum=0.9, lr=0.03),
    "dropout": Case(dropout=0.3),
}


class Small(Workload):
    """Images [n, 12, 10] uint8 -> logits [n, 10]."""

    def __init__(self, case: Case) -> None:
        self._case = case

    def model(self) -> nn.Module:
        if not self._case.images:
            inner = nn.Sequential(nn.Linear(24, 16), nn.ReLU())
            dense = (nn.Linear(120, 24), nn.Sigmoid(), nn.Dropout(self._case.dropout), inner)
            return nn.Sequential(nn.Flatten(), *dense, nn.Linear(16, 10))
        return nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(4, 6, (3, 2), stride=(1, 2), bias=False),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(48, 10),
        )

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        return tuple(model.children())

    def inputs(self, raw: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return pixels(raw, dtype)


def patterns(rows: int) -> Split:
    """Ten noisy patterns to tell apart."""
    drawn = np.random.default_rng(7)
    targets = drawn.integers(0, 10, rows, dtype=np.int64)
    ideal = drawn.integers(0, 120, (10, 12, 10))
    return Split((ideal[targets] + drawn.integers(0, 136, (rows, 12, 10))).astype(np.uint8), targets)


def recipe(case: Case) -> TrainSpec:
    return TrainSpec(batch=BATCH, epochs=case.epochs, lr=case.lr, momentum=case.momentum, seed=SEED)


def initial(case: Case) -> nn.Module:
    torch.manual_seed(SEED)
    return Small(case).model()


def single(case: Case) -> tuple[list[float], Floats]:
    """The losses of `single`'s steps, and its outputs for the training rows at the end."""
    work, train = Small(case), recipe(case)
    use = StrategyUse("single", 1, "cpu")
    (seat,) = strategy(use).seats(Host(cpu="c", cores=1, memory_bytes=1, system="s"), BATCH)
    learner = strategy(use).build(work, initial(case), seat, train, ExecutionSpec())
    rows = rows_of(patterns(case.rows), torch.device("cpu"), work, torch.float32)
    share = partial(share_of, (0, BATCH), BATCH)
    losses = []
    for epoch in range(case.epochs):
        order = order_of(SEED, epoch, case.rows)
        for inputs, targets, count, size in training_batches(rows, order, BATCH, share):
            losses.append(learner.step(inputs, targets, count, size).item() / count)
    return losses, learner.predict(pixels(rows.raw, torch.float32)).numpy()


class Stopped(Exception):
    """What escala's clock raises where a loss is not finite."""


@dataclass
class Noted:
    """Edges that keep what they are told, and in which order they were called."""

    losses: list[float] = field(default_factory=list)
    outputs: list[Floats] = field(default_factory=list)
    called: list[str] = field(default_factory=list)
    stop_after: int | None = None

    def training_begins(self) -> None:
        self.called.append("training begins")

    def training_ended(self, losses: Sequence[float] | Floats) -> None:
        self.called.append("training ended")
        self.losses += [float(loss) for loss in losses]
        if self.called.count("training ended") == self.stop_after:
            raise Stopped

    def validation_begins(self) -> None:
        self.called.append("validation begins")

    def validated(self, outputs: Floats) -> None:
        self.called.append("validated")
        self.outputs.append(outputs)


def task_of(case: Case, ways: int) -> Task:
    split = patterns(case.rows)
    inputs = pixels(torch.from_numpy(split.inputs), torch.float32).numpy()
    return Task(
        workload=Small(case),
        model=initial(case),
        train=recipe(case),
        devices=("cpu",) * ways,
        threads=1,
        inputs=inputs,
        targets=split.targets,
        validation=inputs[:101],
        chunk=40,
    )


def stopped(peer: Peer, orders: Sequence[Order]) -> list[str]:
    """What a peer still called when its edges stopped it."""
    noted = Noted(stop_after=2)
    try:
        peer.train(orders, noted)
    except Stopped:
        return noted.called
    return ["went on"]


def main() -> None:
    name, ways, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    for title, case in CASES.items():
        if case.fits(ways):
            np.savez(folder / f"{title}.npz", **followed(name, ways, case))


def followed(name: str, ways: int, case: Case) -> dict[str, Any]:
    """What the peer and `single` told of one case."""
    task = task_of(case, ways)
    peer = load(name)(task)
    orders = [order_of(SEED, epoch, case.rows) for epoch in range(case.epochs)]
    # As the loop does: what the first training leaves behind must not show in the second.
    peer.train(orders[:1], Noted())
    noted = Noted()
    peer.train(orders, noted)
    peer.synchronise()
    losses, outputs = single(case)
    return {
        "losses": noted.losses,
        "single": losses,
        "validated": np.stack(noted.outputs),
        "outputs": peer.predict(task.inputs),
        "single outputs": outputs,
        "called": noted.called,
        "stopped": stopped(peer, orders),
    }


if __name__ == "__main__":
    main()
