"""One of two seats of the test of sharded networks: `python sharded_seat.py RANK FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from arithmetic_cases import host
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from escala.run.group import Group, leave, meet
from escala.strategies import strategy
from escala.strategies.base import Learner
from escala.strategies.learner import PlainLearner
from escala.strategies.seating import share_of
from escala.terms.errors import EscalaError
from escala.terms.experiment import ExecutionSpec, Precision, StrategyOptions, TrainSpec
from escala.terms.trial import StrategyUse
from escala.workloads import workload
from escala.workloads.user import OwnModel

BATCH = 32
SIZES = (32, 32, 12, 32, 4)
"""Global batches: of the short ones each seat has one microbatch, where it has two of the full ones."""
OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "kept": {"reshard": False},
    "ahead": {"prefetch": 2},
    "narrow": {"narrow": True},
    "grouped": {"group": 2},
}


class Adds(nn.Module):
    """Changes in place what its largest part gives, which is a view."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Linear(28, 28)
        self.last = nn.Linear(28, 10)

    def forward(self, images: Tensor) -> Tensor:
        outputs: Tensor = self.part(images.squeeze(1))
        outputs += 1
        logits: Tensor = self.last(outputs.mean(1))
        return logits


def seated(
    name: str, rank: int, network: str, precision: Precision, *, microbatch: int | None = None, **options: Any
) -> Learner:
    use = StrategyUse(name, 2, "cpu", options=StrategyOptions(**options))
    execution = ExecutionSpec(precision, microbatch=microbatch)
    work = OwnModel(Adds, ()) if network == "adds" else workload(network, {})
    torch.manual_seed(3)
    train = TrainSpec(batch=BATCH, optimizer="adamw", lr=0.01, clip_norm=0.5)
    seats = strategy(use).seats(host("cpu"), BATCH, execution)
    return strategy(use).build(work, work.model(), seats[rank], train, execution)


def curve(learner: Learner, rank: int, dtype: torch.dtype) -> list[float]:
    """This seat's parts of the losses."""
    drawn = torch.Generator().manual_seed(4)
    # For dropout.
    torch.manual_seed(5)
    found = list[float]()
    for size in SIZES:
        rows = torch.randn(size, 1, 28, 28, generator=drawn, dtype=torch.float64).to(dtype)
        targets = torch.arange(size) % 10
        own = share_of(((rank * BATCH) // 2, ((rank + 1) * BATCH) // 2), BATCH, size)
        loss = learner.step(rows[own], targets[own], size, size)
        assert loss is not None
        found.append(loss.item() / size)
    return found


def held(learner: PlainLearner) -> tuple[int, int, int, int]:
    """Numbers in this seat's weights and optimiser, bytes of all it keeps, numbers in all weights."""
    weights = list(learner.core.parameters())
    own = sum(weight.to_local().numel() for weight in weights if isinstance(weight, DTensor))
    state = learner.snapshot()["optimizer"]["state"].values()
    moments = sum(value.numel() for values in state for value in values.values() if value.ndim)
    return own, moments, learner.held_bytes()["cpu"], sum(weight.numel() for weight in weights)


def main() -> None:
    rank, folder = int(sys.argv[1]), Path(sys.argv[2])
    torch.set_num_threads(1)
    group = meet(
        strategy(StrategyUse("fsdp", 2, "cpu")).seats(host("cpu"), BATCH), rank, folder, 60.0, needs_group=True
    )
    found = dict[str, Any]()
    for name, options in OPTIONS.items():
        found[name] = curve(seated("fsdp", rank, "mlp", "bf16", **options), rank, torch.float32)
    for name in ("ddp", "fsdp"):
        learner = seated(name, rank, "normed:rows", "fp64", microbatch=8)
        found[f"norm {name}"] = curve(learner, rank, torch.float64)
        statistics = {key: value for key, value in learner.core.state_dict().items() if "running" in key}
        found[f"statistics {name}"] = torch.cat(list(statistics.values())).numpy()
    learner = seated("fsdp", rank, "mlp", "fp64")
    assert isinstance(learner, PlainLearner)
    before = learner.snapshot()
    found["first"] = curve(learner, rank, torch.float64)
    found["held"] = held(learner)
    learner.restore(before)
    found["again"] = curve(learner, rank, torch.float64)
    found["judged"] = judged(learner, group)
    found["refused"] = ""
    try:
        curve(seated("fsdp", rank, "adds", "fp32"), rank, torch.float32)
    except EscalaError as error:
        found["refused"] = str(error)
    np.savez(folder / f"{rank}.npz", **{name: np.array(value) for name, value in found.items()})
    leave()


def judged(learner: Learner, group: Group) -> list[float]:
    """Sums of outputs after each seat has made as many passes as the other."""
    passes = [torch.ones(2 + group.rank, 1, 28, 28, dtype=torch.float64)] * 3
    outputs = [learner.predict(rows) for rows in passes]
    return [float(output[0].sum()) for output in outputs if output is not None]


if __name__ == "__main__":
    main()
