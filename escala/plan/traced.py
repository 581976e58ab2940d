"""What one seat holds in a step, found on fake tensors: without memory, on any host, for any kind of device."""

from __future__ import annotations

import importlib
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from escala.data.base import Description
from escala.execution.checkpointing import checkpointed
from escala.execution.dropout import draw_by_row
from escala.execution.optimizer_kernel import with_kernel
from escala.execution.piece import Piece, exchange
from escala.execution.precision import autocast, parameter_type
from escala.execution.shadow import shadow
from escala.meters.memory import peak_resident
from escala.plan.live_bytes import LiveBytes, bytes_of, held_by, live_bytes
from escala.plan.stored_rows import judged_rows, last_judged, rows_for
from escala.plan.traced_parts import as_judged, copy_traces, part_traces
from escala.plan.traces import PartTrace, Trace, TraceKey
from escala.strategies.part_shadow import keep_part
from escala.strategies.splits import splits, uneven
from escala.terms.errors import EscalaError, Unfit
from escala.terms.experiment import TrainSpec
from escala.workloads.attention import Attend
from escala.workloads.base import Workload

_CPU = torch.device("cpu")
_ASIDE = 4
_ASIDE_SIZE = 65536


def traced(work: Workload, data: Description, keys: Sequence[TraceKey], model: nn.Module) -> tuple[Trace, ...]:
    """A trace of the workload's network for each key, or the reason why there is none."""
    return tuple(_attempt(work, model, data, key) for key in keys)


def _attempt(work: Workload, model: nn.Module, data: Description, key: TraceKey) -> Trace:
    if key.precision == "fp8":
        return Trace(key, unknown="fp8 layers cannot be traced without their hardware")
    try:
        return _trace(work, model, data, key)
    except Unfit as reason:
        return Trace(key, unknown=str(reason))
    except (EscalaError, RuntimeError, ValueError, TypeError, LookupError) as error:
        told = str(error).splitlines()[0] if str(error) else type(error).__name__
        return Trace(key, unknown=f"a step cannot be traced without numbers: {told}")


def _trace(work: Workload, model: nn.Module, data: Description, key: TraceKey) -> Trace:
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    dtype = parameter_type(key.precision)
    with mode:
        held, piece = _held(work, shadow(model, mode, dtype), key)
        passing, with_gradients = _pass(work, held, piece, data, key)
        judging = _judging(work, held, data, key, judged_rows(work, data))
        along = _along(work, held, piece, data, key)
        ends = [] if along else [(rows, _judging(work, held, data, key, rows)) for rows in last_judged(work, data)]
        fed = bytes_of(rows_for(work, data, key, key.rows))
    trained = [weight for weight in held.parameters() if weight.requires_grad]
    state, stepping = _optimizer(work, trained, dtype, key)
    return Trace(
        key,
        parameters=bytes_of(held.parameters()),
        buffers=bytes_of(held.buffers()),
        gradients=bytes_of(weight.grad for weight in trained if weight.grad is not None),
        optimizer=state,
        stepping=stepping,
        blocks=tuple(bytes_of(block.parameters()) for block in work.blocks(held)),
        casts=_casts(held) if key.precision == "bf16" else 0,
        passing=passing,
        with_gradients=with_gradients,
        judging=judging,
        judged=judged_rows(work, data),
        ends=tuple(ends),
        fed=fed,
        along=along,
    )


def _along(work: Workload, held: nn.Module, piece: Piece, data: Description, key: TraceKey) -> tuple[PartTrace, ...]:
    if key.cut:
        return part_traces(work, held, piece, data, key)
    return copy_traces(work, held, piece, data, key) if key.copies > 1 else ()


def _casts(held: nn.Module) -> int:
    """Copies in 16 bits of the weights of layers that autocast computes in them."""
    layers = (layer for layer in held.modules() if isinstance(layer, nn.Linear | nn.modules.conv._ConvNd))
    return 2 * sum(weight.numel() for layer in layers for weight in layer.parameters(recurse=False))


def _held(work: Workload, fake: nn.Module, key: TraceKey) -> tuple[nn.Module, Piece]:
    """What one seat holds, in the order of `learner.assemble`."""
    piece = Piece()
    if key.parts > 1:
        plan = splits(work, fake)
        if reason := uneven(plan, key.parts):
            raise Unfit(reason)
        keep_part(fake, plan, key.parts)
    if key.by_row:
        fake, _ = draw_by_row(fake, 0, piece)
    elif key.fused:
        fake = _with_fused_dropout(fake)
    return checkpointed(fake, work.blocks(fake), key.again, piece), piece


def _pass(work: Workload, held: nn.Module, piece: Piece, data: Description, key: TraceKey) -> tuple[int, int]:
    """The most that a pass and its way back hold beside weights: without gradients, and with those there by then."""
    held.train().zero_grad()
    live = live_bytes(held_by(held), key)
    piece.begin(key.rows, key.rows)
    with live.gradients_apart(held.parameters()), live:
        # As in the feed, stored rows stay until those of the next batch come.
        _raw, _kept, inputs, targets = rows_for(work, data, key, key.rows)
        with autocast(key.precision, _CPU):
            loss = work.loss(held(inputs), targets)
        loss.backward()
    return live.peak_beside, live.peak


def _judging(work: Workload, held: nn.Module, data: Description, key: TraceKey, rows: int) -> int:
    if not rows:
        return 0
    held.eval()
    live = live_bytes(held_by(held), key)
    with live:
        _raw, _, inputs, _ = rows_for(work, data, key, rows)
        with as_judged(key):
            held(inputs)
    return live.peak


def bare_process() -> int:
    """Resident bytes of a program that has trained something very small; call it before anything large is made."""
    # A seat loads these before its first step, and torch what its optimisers want in that step.
    importlib.import_module("escala.strategies.learner")
    importlib.import_module("torch.distributed.tensor.parallel")
    layer = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(layer.parameters())
    layer(torch.zeros(1, 1)).sum().backward()
    optimizer.step()
    return peak_resident()


def _optimizer(work: Workload, trained: Sequence[nn.Parameter], dtype: torch.dtype, key: TraceKey) -> tuple[int, int]:
    """State of the optimiser, and what its step needs for itself, from steps with a few real weights aside."""
    aside = [nn.Parameter(torch.zeros(_ASIDE_SIZE, dtype=dtype)) for _ in range(_ASIDE)]
    for weight in aside:
        weight.grad = torch.zeros_like(weight)
    recipe = TrainSpec(
        optimizer=key.optimizer, momentum=0.9 if key.momentum else 0.0, weight_decay=0.1 if key.decay else 0.0
    )
    optimizer = with_kernel(work.optimizer(aside, recipe), key.kernel)
    if key.fused and key.kernel == "default":
        # On accelerators torch's optimisers go over many weights at once, where they can.
        for group in optimizer.param_groups:
            if group.get("foreach", False) is None:
                group["foreach"] = True
    optimizer.step()
    # Counts of steps are single numbers, and nothing beside weights.
    state = bytes_of(
        value
        for values in optimizer.state.values()
        for value in values.values()
        if isinstance(value, Tensor) and value.ndim
    )
    known = [value for values in optimizer.state.values() for value in values.values() if isinstance(value, Tensor)]
    live = LiveBytes((*aside, *(weight.grad for weight in aside if weight.grad is not None), *known))
    with live:
        optimizer.step()
    one, total = _ASIDE_SIZE * dtype.itemsize, sum(weight.nbytes for weight in trained)
    at_once = any(group.get("foreach") for group in optimizer.param_groups)
    largest = max((weight.nbytes for weight in trained), default=0)
    stepping = live.peak / one * (total / _ASIDE if at_once else largest)
    return round(state / one * total / _ASIDE), round(stepping)


class _FusedDropout(nn.Module):
    """Dropout as accelerators compute it: of the mask one byte an element is kept, and nothing else."""

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, inputs: Tensor) -> Tensor:
        """[...] -> [...]"""
        return torch.native_dropout(inputs, self.p, True)[0] if self.training else inputs


def _with_fused_dropout(fake: nn.Module) -> nn.Module:
    def make(_: str, layer: nn.Module) -> nn.Module | None:
        if isinstance(layer, Attend):
            # Fused attention draws its mask again on the way back.
            layer.p = 0.0
        elif isinstance(layer, nn.MultiheadAttention):
            layer.dropout = 0.0
        elif type(layer) is nn.Dropout and layer.p > 0 and not layer.inplace:
            return _FusedDropout(layer.p).train(layer.training)
        return None

    return exchange(fake, make)[0]
