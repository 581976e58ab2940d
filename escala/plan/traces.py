"""What one seat holds while it trains, in bytes, as a traced step found it. No torch: estimates are made with it."""

from __future__ import annotations

from msgspec import Struct

from escala.plan.vary import resolved, variations
from escala.strategies import STRATEGIES, strategy
from escala.strategies.layers import Layers
from escala.strategies.pipeline import Pipeline
from escala.strategies.tensor import Tensor
from escala.terms.experiment import (
    ExecutionSpec,
    Experiment,
    MemoryFormat,
    Optimizer,
    OptimizerKernel,
    Precision,
    TrainSpec,
    WorkloadSpec,
)
from escala.terms.trial import StrategyUse


class TraceKey(Struct, frozen=True):
    """All that changes what a step of one workload holds.

    `rows` pass at once. `fused`: on an accelerator, where dropout and optimisers use kernels over many tensors; None:
    on the host's best kind of device. `parts`: into how many parts layers are split. `cut`: the network is cut
    between layers, so that each of its parts must be known. `copies` of the network pass at the same time, each so
    many rows, and one loss is taken of the outputs of all.
    """

    rows: int
    precision: Precision = "fp32"
    again: bool = False
    by_row: bool = False
    optimizer: Optimizer = "sgd"
    momentum: bool = False
    decay: bool = False
    kernel: OptimizerKernel = "default"
    fused: bool | None = None
    parts: int = 1
    cut: bool = False
    copies: int = 1
    memory_format: MemoryFormat = "contiguous"


class PartTrace(Struct, frozen=True):
    """Bytes that one part of a network that is cut holds, and its floating-point operations there and back.

    `given` is what it takes; `saved` what is more after it than before, its outputs included and what it takes gone
    where no one needs it; `peak` the most on both ways beside weights, gradients and what was before,
    `with_gradients` the most with its own gradients that are there by then. The last part has the loss. While rows
    are judged it takes `taken` and holds at most `judging` beside. `alone`: the most while it is weighed by itself,
    weights and gradients included. `tied`: weights of parts before it that it has, too, as that part's number and
    bytes. `multiplies`: whether matrices are multiplied in it.
    """

    parameters: int
    given: int
    saved: int
    peak: int
    operations: int
    with_gradients: int = 0
    taken: int = 0
    judging: int = 0
    alone: int = 0
    tied: tuple[tuple[int, int], ...] = ()
    multiplies: bool = True


class Trace(Struct, frozen=True):
    """Bytes, of the part that one seat has of split layers.

    `stepping` is what the optimiser's step needs for itself; `blocks` the weights of each block, `casts` copies in 16
    bits that autocast makes of weights. `passing` is the most that a pass and its way back hold beside weights and
    gradients, `with_gradients` the most together with the gradients that are there by then, `judging` the most of a
    pass of `judged` rows: as many as are judged at once, or all where no split has more; `ends` has the same of a
    network that is whole for fewer rows, which are the last of a split, as pairs of rows and bytes. `fed`: the rows
    themselves, as stored and as the network takes them. `unknown`: why nothing could be traced.
    """

    key: TraceKey
    parameters: int = 0
    buffers: int = 0
    gradients: int = 0
    optimizer: int = 0
    stepping: int = 0
    blocks: tuple[int, ...] = ()
    casts: int = 0
    passing: int = 0
    with_gradients: int = 0
    judging: int = 0
    judged: int = 0
    ends: tuple[tuple[int, int], ...] = ()
    fed: int = 0
    unknown: str | None = None
    along: tuple[PartTrace, ...] = ()
    """Parts one after the other, where the network is cut; of several copies the first one and another."""


def key_of(use: StrategyUse, train: TrainSpec, execution: ExecutionSpec) -> TraceKey:
    """What must be traced for such trials; an empty device stands for the host's best."""
    chosen = strategy(use)
    devices = use.ways if use.name == "data-parallel" else 1
    share = -(-train.batch // (chosen.shares * devices))
    at_once = chosen.microbatch(share, execution) if isinstance(chosen, Pipeline) else execution.at_once
    if at_once is not None:
        at_once = -(-at_once // devices)
    return TraceKey(
        # A batch normalisation takes two rows at least.
        rows=max(2, min(share, at_once or share)),
        precision=execution.precision,
        again=execution.activation_checkpointing,
        # Seats that hold parts of layers always draw by row.
        by_row=execution.by_row or isinstance(chosen, Tensor),
        optimizer=train.optimizer,
        momentum=train.momentum > 0,
        decay=train.weight_decay > 0,
        kernel=execution.optimizer_kernel,
        fused=use.device != "cpu" if use.device else None,
        parts=max(1, chosen.parts) if isinstance(chosen, Tensor) else 1,
        cut=isinstance(chosen, Pipeline | Layers),
        copies=devices,
        memory_format=execution.memory_format,
    )


def keys_of(experiment: Experiment) -> tuple[tuple[TraceKey, ...], ...]:
    """What must be traced of each of `workloads_of(experiment)`, in that order, sweeps included.

    Nothing of peers, nor where the rows that pass at once are still to be found.
    """
    found = list[tuple[WorkloadSpec, dict[TraceKey, None]]]()
    for variation in variations(experiment):
        workload = variation.experiment.workload
        keys = next((keys for known, keys in found if known == workload), None)
        if keys is None:
            keys = {}
            found.append((workload, keys))
        for spec in variation.experiment.strategy:
            train, execution = resolved(variation.experiment, spec)
            if spec.peer is None and spec.name in STRATEGIES and execution.microbatch != "max":
                use = StrategyUse(spec.name, spec.ways, spec.device or "", spec.simulate, spec.options)
                keys[key_of(use, train, execution)] = None
    return tuple(tuple(keys) for _, keys in found)
