"""What `benchmarks/gpu.py` trains: four networks, rows for them, and how escala runs them fastest."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec
import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from escala.data.base import Split
from escala.terms.experiment import ExecutionSpec, Optimizer, TrainSpec
from escala.workloads import workload
from escala.workloads.base import Workload

FASTEST = ExecutionSpec("bf16", compile="tuned", capture=True, optimizer_kernel="fused", feed="resident")
IMAGES = msgspec.structs.replace(FASTEST, memory_format="channels_last")
# On so small a network conversions to 16 bits cost more than the products gain.
NARROW = msgspec.structs.replace(FASTEST, precision="tf32")


@dataclass(frozen=True)
class Work:
    """A workload of escala's with `rows` stored rows of `shape`; `batch` is that of one seat.

    Stored are uint8 images with labels below `kinds`, or, with `tokens`, int32 numbers below it, all of which count.
    """

    workload: str
    batch: int
    rows: int
    shape: tuple[int, ...]
    kinds: int
    best: ExecutionSpec
    options: dict[str, Any] = field(default_factory=dict)
    optimizer: Optimizer = "sgd"
    lr: float = 0.01
    tokens: bool = False

    def made(self) -> Workload:
        return workload(self.workload, self.options)

    def train(self, ways: int = 1) -> TrainSpec:
        return TrainSpec(batch=self.batch * ways, optimizer=self.optimizer, lr=self.lr)

    def split(self, batch: int | None = None) -> Split:
        """Whole batches of a size, or of the work's own: every step is taken for a full one."""
        size = batch or self.batch
        rows = self.rows // size * size
        drawn = np.random.default_rng(1)
        kind, most = (np.int32, self.kinds) if self.tokens else (np.uint8, 256)
        inputs = drawn.integers(0, most, (rows, *self.shape), dtype=kind)
        if self.tokens:
            return Split(inputs, np.full((rows, 1), self.shape[0] - 1, dtype=np.int64))
        return Split(inputs, drawn.integers(0, self.kinds, rows, dtype=np.int64))


WORKS = {
    "mlp": Work("mlp", 64, 937 * 64, (28, 28), 10, NARROW, {"dropout": 0.0}),
    "resnet18": Work("resnet18", 128, 78 * 128, (3, 32, 32), 100, IMAGES),
    "resnet34": Work("resnet34", 128, 61 * 128, (148, 197), 9, IMAGES),
    # Without dropout, as the loop by hand; a vocabulary in 64s, as its authors advise for their GPT.
    "transformer-lm": Work(
        "transformer-lm",
        32,
        4_096,
        (257,),
        50_304,
        FASTEST,
        {"dropout": 0.0, "vocabulary": 50_304},
        "adamw",
        3e-4,
        tokens=True,
    ),
}
_SMALL_LM = {"dropout": 0.0, "vocabulary": 64, "length": 8, "layers": 1, "width": 16, "heads": 2, "ff": 16}


def small(name: str) -> Work:
    """The same work for a processor and a few seconds, and its fastest execution as far as a processor has it."""
    work = WORKS[name]
    best = msgspec.structs.replace(work.best, precision="fp32", compile=False, capture=False)
    shapes = {"resnet18": (3, 8, 8), "resnet34": (36, 36), "transformer-lm": (9,)}
    options, kinds = (_SMALL_LM, 64) if work.tokens else (work.options, work.kinds)
    shape = shapes.get(name, work.shape)
    return replace(work, batch=4, rows=64, shape=shape, options=options, kinds=kinds, best=best)


def flops_per_sample(work: Work) -> int:
    """Floating-point operations of one sample, forward and back, counted on a processor."""
    made, split = work.made(), work.split()
    inputs, targets = made.example(
        torch.from_numpy(split.inputs[:2]), torch.from_numpy(split.targets[:2]), torch.float32
    )
    model = made.model()
    with FlopCounterMode(display=False) as counter:
        made.loss(model(inputs), targets).backward()
    return int(counter.get_total_flops()) // 2
