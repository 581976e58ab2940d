"""What each part of a network that is cut holds on its ways there and back, on fake tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from escala.execution.piece import Piece
from escala.execution.precision import autocast, parameter_type
from escala.plan.live_bytes import LiveBytes, bytes_of
from escala.plan.traces import PartTrace, TraceKey
from escala.strategies.arrival import Arrivals
from escala.strategies.parts import Carried, parts_of, tensors_of
from escala.workloads.base import Workload

_CPU = torch.device("cpu")


def part_traces(
    work: Workload, held: nn.Module, piece: Piece, key: TraceKey, rows: tuple[Tensor, Tensor]
) -> tuple[PartTrace, ...]:
    """Of each part in turn, for these stored rows and targets. Raises `Unfit` where the network cannot be cut."""
    parts = parts_of(work, held)
    held.train().zero_grad()
    piece.begin(key.rows, key.rows)
    inputs, targets = work.example(*rows, parameter_type(key.precision))
    carried: Carried = inputs
    found = list[PartTrace]()
    for number, part in enumerate(parts):
        last = targets if number == len(parts) - 1 else None
        traced, carried = _there_and_back(work, part.module, carried, last, key)
        found.append(traced)
    return tuple(found)


def _there_and_back(
    work: Workload, module: nn.Module, carried: Carried, targets: Tensor | None, key: TraceKey
) -> tuple[PartTrace, Carried]:
    # As a stage begins, so that layers which work in place find no leaf.
    arrivals = Arrivals()
    given = tuple(arrivals.begin(one.detach(), learns=one.is_floating_point()) for one in tensors_of(carried))
    known = [*module.parameters(), *module.buffers(), *given]
    if targets is not None:
        known.append(targets)
    live = LiveBytes(known)
    trained = [weight for weight in module.parameters() if weight.requires_grad]
    for weight in trained:
        # A weight that stands in an earlier part, too, has its gradient anew.
        weight.grad = None
    with FlopCounterMode(display=False) as counter, live.gradients_apart(trained), live:
        with autocast(key.precision, _CPU):
            outputs = module(given if isinstance(carried, tuple) else given[0])
        saved = live.now
        made = tensors_of(outputs)
        ends = [one for one in made if one.requires_grad] if targets is None else [work.loss(outputs, targets)]
        if ends:
            torch.autograd.backward(ends, [torch.ones_like(one) for one in ends])
    traced = PartTrace(
        bytes_of(module.parameters()), bytes_of(given), saved, live.peak_beside, counter.get_total_flops()
    )
    cut_off = tuple(one.detach() for one in made)
    return traced, cut_off if isinstance(outputs, tuple) else cut_off[0]
