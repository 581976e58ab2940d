"""The cases of the same-arithmetic test, and which strategies go through which of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec
import torch

from escala.strategies import strategy
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, Optimizer, Precision, Schedule, StrategyOptions
from escala.terms.host import Device, Host
from escala.terms.trial import StrategyUse


@dataclass(frozen=True)
class Case:
    """What is trained and how; `rows` is chosen so that the last batch of each epoch is uneven."""

    name: str
    network: str
    precision: Precision
    optimizer: Optimizer = "sgd"
    momentum: float = 0.0
    lr: float = 0.05
    batch: int = 64
    rows: int = 3000
    steps: int = 200
    microbatch: int | None = None
    clip_norm: float | None = None
    schedule: Schedule = "constant"
    warmup_steps: int = 0
    batchnorm: str = "local"
    dropout: float = 0.0
    random: Literal["seat", "row"] | None = None
    transport: Literal["gloo", "shm"] | None = None
    choices: tuple[tuple[str, Any], ...] = ()
    """Further keys of `[execution]`, none of which may change the result."""

    @property
    def execution(self) -> ExecutionSpec:
        return ExecutionSpec(
            self.precision,
            batchnorm=self.batchnorm,
            microbatch=self.microbatch,
            random=self.random,
            transport=self.transport,
            **dict(self.choices),
        )

    def execution_with(self, use: StrategyUse) -> ExecutionSpec:
        """What the strategy is built with: where nothing is exchanged, nothing can be said of how."""
        if use.name in ("ddp", "zero1"):
            return self.execution
        transport = self.transport if use.name == "single" else None
        return msgspec.structs.replace(
            self.execution, bucket_mb=None, static_graph=False, overlap="backward", transport=transport
        )


CHANNELS_LAST = (("memory_format", "channels_last"),)
CAPTURED = (("capture", 3),)
RESIDENT_CAPTURED = (*CAPTURED, ("feed", "resident"))
AGAIN = (("activation_checkpointing", True),)
HOST_OF_TWO = (("feed", "host"), ("workers", 2))
_CASES = (
    Case("mlp fp32", "mlp", "fp32", rows=2987),
    Case("plain fp64", "normed:plain", "fp64", rows=2987),
    Case("plain fp64, momentum, odd batch", "normed:plain", "fp64", momentum=0.9, lr=0.01, batch=37),
    Case("plain fp64, AdamW", "normed:plain", "fp64", optimizer="adamw", lr=0.001, rows=2987),
    Case("plain fp64, last batch of one row", "normed:plain", "fp64", rows=129),
    Case("plain fp32, microbatches, clipping", "normed:plain", "fp32", rows=331, microbatch=8, clip_norm=0.5),
    Case("plain fp64, momentum", "normed:plain", "fp64", momentum=0.9, lr=0.01, rows=2999),
    Case(
        "plain fp64, momentum, microbatches", "normed:plain", "fp64", momentum=0.9, lr=0.01, rows=2999, microbatch=5
    ),
    Case(
        "plain fp64, clipping, momentum, cosine",
        "normed:plain",
        "fp64",
        rows=331,
        momentum=0.9,
        clip_norm=0.3,
        schedule="cosine",
    ),
    Case(
        "plain fp64, AdamW, warm-up",
        "normed:plain",
        "fp64",
        optimizer="adamw",
        lr=0.002,
        rows=331,
        microbatch=16,
        warmup_steps=50,
    ),
    # The larger the rate, the more a difference of rounding grows where it changes which pixel is the largest.
    Case("cnn-small fp32", "cnn-small", "fp32", lr=0.001, batch=8, rows=53),
    Case("cnn-small fp64", "cnn-small", "fp64", batch=8, rows=53),
    # The last batches leave ghosts of fewer or more rows, and of three seats one or two without any.
    Case("normed rows fp64, ghosts", "normed:rows", "fp64", rows=337, batchnorm="ghost:8"),
    Case("normed rows fp64, short ghosts", "normed:rows", "fp64", rows=331, batchnorm="ghost:16"),
    Case("normed images fp32, ghosts", "normed:images", "fp32", rows=300, batchnorm="ghost:8"),
    Case(
        "normed images fp64, ghosts, microbatches",
        "normed:images",
        "fp64",
        momentum=0.9,
        lr=0.01,
        batch=96,
        rows=480 + 33,
        microbatch=16,
        batchnorm="ghost:8",
    ),
    # Last batches of two rows would have variances of next to nothing, by which rounding is divided.
    Case("normed rows fp64, synchronised", "normed:rows", "fp64", rows=337, batchnorm="sync"),
    Case("normed images fp64, synchronised", "normed:images", "fp64", rows=321, batchnorm="sync"),
    Case("normed images fp32, synchronised", "normed:images", "fp32", rows=337, batchnorm="sync"),
    Case("plain fp32, dropout by row", "normed:plain", "fp32", rows=331, dropout=0.2, random="row"),
    Case("plain fp64, dropout by row", "normed:plain", "fp64", rows=331, dropout=0.2, random="row"),
    Case(
        "plain fp64, dropout by row, microbatches",
        "normed:plain",
        "fp64",
        rows=331,
        dropout=0.2,
        random="row",
        microbatch=5,
    ),
    Case("attending fp64, dropout by row", "attending:network", "fp64", rows=331, dropout=0.1, random="row"),
    Case("attending fp32, dropout by row", "attending:network", "fp32", rows=331, dropout=0.1, random="row"),
    Case(
        "attending fp64, dropout by row, microbatches",
        "attending:network",
        "fp64",
        rows=331,
        dropout=0.1,
        random="row",
        microbatch=11,
    ),
    Case("headed fp64, dropout by row", "attending:headed", "fp64", rows=331, dropout=0.1, random="row"),
    # Ghosts ask for dropout by row without being told.
    Case("normed rows fp64, ghosts, dropout", "normed:rows", "fp64", rows=331, dropout=0.1, batchnorm="ghost:8"),
    Case(
        "normed rows fp64, ghosts, dropout, microbatches",
        "normed:rows",
        "fp64",
        rows=331,
        dropout=0.1,
        batchnorm="ghost:8",
        microbatch=16,
    ),
    # Choices of execution, each the twin of a case above without it. Compressed exchanges alone are left out:
    # they are declared to be approximate.
    Case("cnn-small fp64, channels_last", "cnn-small", "fp64", batch=8, rows=53, choices=CHANNELS_LAST),
    Case(
        "normed images fp32, ghosts, channels_last",
        "normed:images",
        "fp32",
        rows=300,
        batchnorm="ghost:8",
        choices=CHANNELS_LAST,
    ),
    Case("plain fp64, compile", "normed:plain", "fp64", rows=2987, choices=(("compile", True),)),
    Case(
        "plain fp64, AdamW, fused",
        "normed:plain",
        "fp64",
        optimizer="adamw",
        lr=0.001,
        rows=2987,
        choices=(("optimizer_kernel", "fused"), ("feed", "host"), ("workers", 1)),
    ),
    Case(
        "plain fp64, momentum, foreach",
        "normed:plain",
        "fp64",
        momentum=0.9,
        lr=0.01,
        rows=2999,
        choices=(("optimizer_kernel", "foreach"),),
    ),
    Case("plain fp64, one last row, host", "normed:plain", "fp64", rows=129, choices=(("feed", "host"),)),
    Case("plain fp64, one last row, resident", "normed:plain", "fp64", rows=129, choices=(("feed", "resident"),)),
    Case("plain fp64, host with two workers", "normed:plain", "fp64", rows=2987, choices=HOST_OF_TWO),
    Case("plain fp64, small buckets", "normed:plain", "fp64", rows=2987, choices=(("bucket_mb", 0.02),)),
    Case("plain fp64, static graph", "normed:plain", "fp64", rows=129, choices=(("static_graph", True),)),
    # Recorded steps: by the real thing on a GPU, by its stand-in elsewhere.
    Case("plain fp64, one last row, captured", "normed:plain", "fp64", rows=129, choices=RESIDENT_CAPTURED),
    Case(
        "plain fp64, AdamW, warm-up, captured",
        "normed:plain",
        "fp64",
        optimizer="adamw",
        lr=0.002,
        rows=331,
        microbatch=16,
        warmup_steps=50,
        choices=CAPTURED,
    ),
    Case(
        "plain fp64, clipping, momentum, cosine, captured",
        "normed:plain",
        "fp64",
        rows=331,
        momentum=0.9,
        clip_norm=0.3,
        schedule="cosine",
        choices=CAPTURED,
    ),
    Case(
        "plain fp32, dropout by row, captured",
        "normed:plain",
        "fp32",
        rows=331,
        dropout=0.2,
        random="row",
        choices=RESIDENT_CAPTURED,
    ),
    Case("plain fp64, microbatches", "normed:plain", "fp64", rows=331, microbatch=8),
    Case("plain fp64, checkpointed, microbatches", "normed:plain", "fp64", rows=331, microbatch=8, choices=AGAIN),
    Case("plain fp64, checkpointed, compile", "normed:plain", "fp64", rows=2987, choices=(*AGAIN, ("compile", True))),
    Case(
        "headed fp64, checkpointed, dropout by row",
        "attending:headed",
        "fp64",
        rows=331,
        dropout=0.1,
        random="row",
        choices=AGAIN,
    ),
    Case(
        "normed images fp64, checkpointed, synchronised",
        "normed:images",
        "fp64",
        rows=321,
        batchnorm="sync",
        choices=AGAIN,
    ),
    Case(
        "normed rows fp64, checkpointed, ghosts, dropout, microbatches",
        "normed:rows",
        "fp64",
        rows=331,
        dropout=0.1,
        batchnorm="ghost:8",
        microbatch=16,
        choices=AGAIN,
    ),
    # What does not go through DDP must not lean on it.
    Case("mlp fp32, shared memory", "mlp", "fp32", rows=2987, transport="shm"),
    Case("plain fp64, shared memory, last batch of one row", "normed:plain", "fp64", rows=129, transport="shm"),
    Case(
        "plain fp64, shared memory, AdamW, microbatches, clipping",
        "normed:plain",
        "fp64",
        optimizer="adamw",
        lr=0.001,
        batch=37,
        rows=331,
        microbatch=5,
        clip_norm=0.5,
        transport="shm",
    ),
    Case(
        "plain fp32, shared memory, momentum, microbatches",
        "normed:plain",
        "fp32",
        rows=331,
        momentum=0.9,
        lr=0.01,
        microbatch=8,
        transport="shm",
    ),
    Case(
        "normed images fp64, shared memory, synchronised",
        "normed:images",
        "fp64",
        rows=321,
        batchnorm="sync",
        transport="shm",
    ),
    Case(
        "normed rows fp64, shared memory, ghosts, dropout",
        "normed:rows",
        "fp64",
        rows=331,
        dropout=0.1,
        batchnorm="ghost:8",
        microbatch=16,
        transport="shm",
    ),
)

_IN_PARTS = (
    "plain fp64, last batch of one row",
    "plain fp64, momentum, microbatches",
    "plain fp32, microbatches, clipping",
    "plain fp64, AdamW, warm-up, captured",
)
CASES = _CASES + tuple(
    replace(case, name=f"{case.name}, in parts", choices=(*case.choices, ("overlap", "optimizer")))
    for case in _CASES
    if case.name in _IN_PARTS
)


# What every strategy goes through: both precisions, uneven last batches, accumulation, BatchNorm in all its forms,
# clipping, momentum, AdamW, schedules, dropout by row, and choices of execution that change how a step is made.
ESSENTIAL = (
    "mlp fp32",
    "plain fp64, momentum, odd batch",
    "plain fp64, last batch of one row",
    "plain fp32, microbatches, clipping",
    "plain fp64, momentum, microbatches",
    "plain fp64, clipping, momentum, cosine",
    "plain fp64, AdamW, warm-up",
    "cnn-small fp32",
    "cnn-small fp64, channels_last",
    "normed rows fp64, short ghosts",
    "normed images fp64, ghosts, microbatches",
    "normed rows fp64, synchronised",
    "normed images fp32, synchronised",
    "attending fp64, dropout by row, microbatches",
    "headed fp64, dropout by row",
    "plain fp64, one last row, resident",
    "plain fp64, checkpointed, microbatches",
    "normed rows fp64, checkpointed, ghosts, dropout, microbatches",
)
# What meshes of two dimensions go through: four seats take long over each case on a small machine.
MESHES = (
    "mlp fp32",
    "plain fp64, last batch of one row",
    "plain fp64, clipping, momentum, cosine",
    "plain fp64, AdamW, warm-up",
    "normed rows fp64, short ghosts",
    "attending fp64, dropout by row",
)
# What further ways to use a strategy go through.
BRIEF = (
    "mlp fp32",
    "plain fp64, last batch of one row",
    "plain fp64, momentum, microbatches",
    "plain fp64, clipping, momentum, cosine",
    "plain fp64, AdamW, warm-up",
    "cnn-small fp64, channels_last",
    "normed rows fp64, short ghosts",
    "normed rows fp64, synchronised",
    "attending fp64, dropout by row",
    "plain fp64, checkpointed, microbatches",
)


def host(device: str) -> Host:
    """As many cores as a test may pretend to have, and the GPUs there are."""
    cards = tuple(Device("cuda", index, "GPU", 1) for index in range(torch.cuda.device_count()))
    return Host(cpu="test", cores=4, memory_bytes=1, system="test", devices=cards if device == "cuda" else ())


def fits(case: Case, use: StrategyUse) -> bool:
    """Whether the strategy can do what the case asks for."""
    try:
        return bool(strategy(use).seats(host(use.device), case.batch, case.execution_with(use)))
    except Unfit:
        return False


def compared(number: int, use: StrategyUse) -> bool:
    """Whether the case is run: all by one seat and by DDP on two, those with shared memory by `zero1`, too.

    Meshes, on four seats, differ from one dimension in who exchanges with whom alone, DDP on one or three from two in
    its shares. `fully_shard` takes long over each step on a CPU.
    """
    case = CASES[number]
    if use.name in ("single", "data-parallel") or (use.name, use.ways) == ("ddp", 2):
        names = tuple(one.name for one in CASES)
    elif use.ways > 3:
        names = MESHES
    elif use.name in ("ddp", "fsdp") or use.options not in (StrategyOptions(), StrategyOptions(microbatches=2)):
        names = BRIEF
    else:
        shared = tuple(one.name for one in CASES if one.transport == "shm")
        names = ESSENTIAL + (shared if use.name == "zero1" else ())
    return fits(case, use) and case.name in names


def left_out(case: Case, use: StrategyUse) -> bool:
    """Whether the strategy is to refuse what the case asks for."""
    captured = any(key == "capture" for key, _ in case.choices)
    if use.name == "zero1" and ("overlap", "optimizer") in case.choices:
        return True
    if captured and use.name not in ("single", "ddp"):
        return True
    if use.name == "tensor":
        return case.batchnorm == "sync" and use.options.replicas is not None
    if use.name == "pipeline":
        twice = case.microbatch is not None and use.options.microbatches is not None
        return twice or case.batchnorm == "sync"
    return use.name == "layers" and ("compile", True) in case.choices
