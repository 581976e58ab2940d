"""Parameters and floating-point operations of a network, counted on one row of zeros, and whether the data fit it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode

from escala.data.base import Description
from escala.execution.dropout import drops
from escala.execution.shadow import shadow
from escala.peers.layers import peers_unfit
from escala.plan.quick_draws import QuickDraws
from escala.plan.stored_rows import stored
from escala.strategies.parts import check_whole, parts_of
from escala.strategies.splits import Split, splits
from escala.terms.errors import EscalaError, Unfit
from escala.workloads.base import Workload

LARGE = 2**26
"""Parameters from which on a network is looked at without numbers."""


class ModelFacts(NamedTuple):
    """Parameters, floating-point operations of one sample forward and backward, names of those without gradient.

    `blocks`: how many it can be cut into; `uncut`: why it cannot be, or None. `images`: inputs and some weights have
    four dimensions, so that memory formats bear on them. `drops`: whether it drops anything in
    training, `packs`: in a `Dropout` of torch. `row_bytes`: of one stored row with its targets.
    `peers_unfit`: why peers cannot train it. `segments`: parts that pass one after the other. `splits`: layers that
    tensor parallelism would split, or `splits_unfit`: why it cannot.
    """

    parameters: int
    flops_per_sample: int
    unused: tuple[str, ...]
    blocks: int
    uncut: str | None
    images: bool
    drops: bool
    packs: bool
    row_bytes: int
    peers_unfit: dict[str, str]
    segments: int
    splits: tuple[Split, ...]
    splits_unfit: str | None


def model_of(work: Workload) -> nn.Module:
    """The workload's network to look at: its initial weights are of their kind, but not those of any seed.

    Raises `MODEL-*`.
    """
    try:
        torch.manual_seed(0)
        with QuickDraws():  # type: ignore[no-untyped-call]
            return work.model()
    except Exception:
        # Its code may not take numbers that repeat; what else is wrong with it is told by the same error again.
        torch.manual_seed(0)
        return work.model()


def model_facts(work: Workload, data: Description, model: nn.Module) -> ModelFacts:
    """What one pass over two rows tells of a network.

    Raises `MODEL-*`; `MODEL-DATA` where the network cannot take rows of this shape or has too few outputs.
    """
    # Two rows, so that networks with batch normalisation can train on them.
    raw, kept = stored(data, 2)
    try:
        counted = _counted_without_numbers(work, data, model, raw, kept) or _counted(work, data, model, raw, kept)
        inputs, _ = work.example(raw, kept, torch.float32)
    except (RuntimeError, ValueError, IndexError) as error:
        shape = " x ".join(map(str, data.shape))
        raise EscalaError(
            "MODEL-DATA",
            data.name,
            f"the network does not take rows of {shape}: {str(error).splitlines()[0]}",
            next_step="name other data, another workload, or set workload.options for these rows",
        ) from error
    blocks, uncut = _cuts(work, model, inputs)
    return ModelFacts(
        sum(parameter.numel() for parameter in model.parameters()),
        *counted,
        blocks,
        uncut,
        inputs.ndim == 4 and any(parameter.ndim == 4 for parameter in model.parameters()),
        drops(model),
        any(type(layer) is nn.Dropout and layer.p > 0 for layer in model.modules()),
        raw[0].nbytes + kept[0].nbytes,
        peers_unfit(work, model),
        len(work.blocks(model)),
        *_splits(work, model),
    )


def _counted(
    work: Workload, data: Description, model: nn.Module, raw: Tensor, kept: Tensor
) -> tuple[int, tuple[str, ...]]:
    """Floating-point operations of one sample of these two rows, and the names of parameters without gradient."""
    counter = FlopCounterMode(display=False)
    with counter:
        inputs, targets = work.example(raw, kept, torch.float32)
        outputs = model(inputs)
        _check_classes(outputs, data)
        work.loss(outputs, targets).backward()
    unused = tuple(name for name, value in model.named_parameters() if value.requires_grad and value.grad is None)
    model.zero_grad()
    return counter.get_total_flops() // 2, unused


def _counted_without_numbers(
    work: Workload, data: Description, model: nn.Module, raw: Tensor, kept: Tensor
) -> tuple[int, tuple[str, ...]] | None:
    """The same of a large network, whose pass would take minutes and much memory; None: it has to be made.

    What goes wrong without numbers is left to the real pass to tell.
    """
    if sum(parameter.numel() for parameter in model.parameters()) < LARGE:
        return None
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    try:
        with mode:
            return _counted(work, data, shadow(model, mode), raw, kept)
    except Exception:
        return None


def _cuts(work: Workload, model: nn.Module, inputs: Tensor) -> tuple[int, str | None]:
    """How many blocks the network can be cut into, or why it cannot be cut."""
    try:
        parts = parts_of(work, model)
        check_whole(model, parts, inputs)
    except Unfit as reason:
        return 0, str(reason)
    return len(parts), None


def _splits(work: Workload, model: nn.Module) -> tuple[tuple[Split, ...], str | None]:
    try:
        return splits(work, model), None
    except Unfit as reason:
        return (), str(reason)


def _check_classes(outputs: Tensor, data: Description) -> None:
    if data.classes and outputs.ndim == 2 and outputs.shape[1] < data.classes:
        raise EscalaError(
            "MODEL-DATA",
            data.name,
            f"holds {data.classes} classes, the network has {outputs.shape[1]} outputs",
            next_step=f"set workload.options.classes = {data.classes}, or name other data",
        )
