"""What each part of a network that is cut or copied holds on its ways there and back, on fake tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import torch
from msgspec.structs import replace
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge, register_multi_grad_hook
from torch.utils.flop_counter import FlopCounterMode

from escala.data.base import Description
from escala.execution.piece import Piece
from escala.execution.precision import autocast
from escala.plan.live_bytes import LiveBytes, bytes_of, held_by, live_bytes
from escala.plan.stored_rows import judged_rows, rows_for
from escala.plan.traces import PartTrace, TraceKey
from escala.strategies.parts import Carried, Part, parts_of, tensors_of
from escala.workloads.base import Workload

Loss = Callable[[Tensor], Tensor]
_CPU = torch.device("cpu")
_PRODUCTS = tuple(getattr(torch.ops.aten, name) for name in ("mm", "addmm", "bmm", "baddbmm"))
"""What goes through the library that keeps room for products of matrices; convolutions go through another."""


@contextmanager
def as_judged(key: TraceKey) -> Iterator[None]:
    """Without gradients, and by the code that rows are trained with, as seats judge them."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with torch.no_grad(), autocast(key.precision, _CPU):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


class _Judged(NamedTuple):
    taken: int
    peak: int
    made: int


def part_traces(
    work: Workload, held: nn.Module, piece: Piece, data: Description, key: TraceKey
) -> tuple[PartTrace, ...]:
    """Of each part in turn. Raises `Unfit` where the network cannot be cut."""
    modules, tied = _with_own_weights(parts_of(work, held))
    _, _, inputs, targets = rows_for(work, data, key, key.rows)
    piece.begin(key.rows, key.rows)
    found = _there_and_back(modules, inputs, key, lambda outputs: work.loss(outputs, targets), (targets,))
    piece.begin(key.rows, key.rows)
    weighed = _there_and_back(modules, inputs, key, None, (), held=True)
    judged = _judged(modules, work, data, key, judged_rows(work, data))
    return tuple(
        replace(
            part,
            taken=once.taken,
            judging=once.peak,
            alone=_alone(bare),
            tied=some,
        )
        for part, bare, once, some in zip(found, weighed, judged, tied, strict=True)
    )


def copy_traces(
    work: Workload, held: nn.Module, piece: Piece, data: Description, key: TraceKey
) -> tuple[PartTrace, ...]:
    """Of the first of several copies, which gathers the outputs of all for the loss, and of another one."""
    _, _, inputs, _ = rows_for(work, data, key, key.rows)
    *_, targets = rows_for(work, data, key, key.rows * key.copies)

    def loss(outputs: Tensor) -> Tensor:
        # As gathered: one tensor of all rows, of whose gradient the copy's own is a part.
        return work.loss(torch.cat((outputs, *[outputs.detach()] * (key.copies - 1))), targets)

    found = list[PartTrace]()
    for ending in (loss, None):
        piece.begin(key.rows, key.rows)
        found += _there_and_back([held], inputs, key, ending, (targets,))
    (judged,) = _judged([held], work, data, key, -(-judged_rows(work, data) // key.copies))
    first, other = (replace(part, taken=judged.taken, judging=judged.peak) for part in found)
    return replace(first, judging=first.judging + key.copies * judged.made), other


def _alone(part: PartTrace) -> int:
    # It goes several times, so a new gradient meets the last one.
    return 2 * part.parameters + part.given + part.with_gradients


def _with_own_weights(parts: Sequence[Part]) -> tuple[list[nn.Module], list[tuple[tuple[int, int], ...]]]:
    """The parts, those with weights of earlier ones as copies, and what they have of which: on devices of their own
    the gradients of such a weight are several, and not one that is added up within the pass.
    """
    first = dict[int, int]()
    modules, tied = list[nn.Module](), list[tuple[tuple[int, int], ...]]()
    for number, part in enumerate(parts):
        again = dict[int, int]()
        for weight in part.module.parameters():
            holder = first.setdefault(id(weight), number)
            if holder != number:
                again[holder] = again.get(holder, 0) + weight.untyped_storage().nbytes()
        tied.append(tuple(again.items()))
        modules.append(_copy_of(part.module) if again else part.module)
    return modules, tied


def _copy_of(module: nn.Module) -> nn.Module:
    values: dict[int, object] = {
        id(weight): nn.Parameter(torch.empty_like(weight), weight.requires_grad) for weight in module.parameters()
    }
    values |= {id(buffer): torch.empty_like(buffer) for buffer in module.buffers()}
    return copy.deepcopy(module, values)


def _there_and_back(
    modules: Sequence[nn.Module],
    inputs: Tensor,
    key: TraceKey,
    loss: Loss | None,
    known: Sequence[Tensor],
    *,
    held: bool = False,
) -> list[PartTrace]:
    """Each part's figures in a pass through all of them; without a loss, back from what gradients they are given.

    As in the network as a whole, what a part gives is only kept if it or the next one needs it for the way back; the
    last outputs also where they are `held`.
    """
    for module in modules:
        module.train().zero_grad()
    weights = [weight for module in modules for weight in module.parameters()]
    live = live_bytes((*(value for module in modules for value in held_by(module)), inputs, *known), key)
    with FlopCounterMode(display=False) as counter, live.gradients_apart(weights), live:
        walk = _Walk(live, counter, len(modules))
        with autocast(key.precision, _CPU):
            ends, outputs = _forward(modules, inputs, loss, walk)
        if not held:
            del outputs
        if ends:
            gradients = [torch.ones(end.shape, dtype=end.dtype) for end in ends]
            torch.autograd.backward([end.edge for end in ends], gradients)
        walk.close()
    return [walk.trace(number, bytes_of(module.parameters())) for number, module in enumerate(modules)]


def _forward(
    modules: Sequence[nn.Module], inputs: Tensor, loss: Loss | None, walk: _Walk
) -> tuple[list[_End], Carried]:
    """Where the way back begins, without holding on to what was made, as nothing does in a step; and that itself."""
    carried: Carried = inputs
    for number, module in enumerate(modules):
        taken = bytes_of(tensors_of(carried))
        carried = module(carried)
        if number == len(modules) - 1 and loss is not None:
            carried = loss(tensors_of(carried)[0])
        walk.forward(number, taken, tensors_of(carried))
    made = (one for one in tensors_of(carried) if one.requires_grad)
    return [_End(get_gradient_edge(one), one.shape, one.dtype) for one in made], carried


class _End(NamedTuple):
    """Of an output, what is needed to go back from it, without its numbers."""

    edge: GradientEdge
    shape: torch.Size
    dtype: torch.dtype


class _Walk:
    """What there is at the edges of parts, and the most between them, on both ways."""

    def __init__(self, live: LiveBytes, counter: FlopCounterMode, parts: int) -> None:
        self._live, self._counter = live, counter
        self._taken, self._edges = [0] * parts, [0]
        self._most, self._with_gradients, self._operations = [0] * parts, [0] * parts, [0] * parts
        self._at = 0
        self._apart = 0
        self._counted = self._products = 0
        self._multiplies = [False] * parts

    def forward(self, number: int, taken: int, made: Sequence[Tensor]) -> None:
        """The part of this number has gone forward; where gradients of what it made come, those after it are back."""
        self._at = number
        self.close()
        self._taken[number] = taken
        self._edges.append(self._live.now)
        learning = [one for one in made if one.requires_grad]
        if learning and number < len(self._taken) - 1:
            register_multi_grad_hook(learning, lambda _: self._back_at(number), mode="any")

    def close(self) -> None:
        """Whatever was highest since the last edge was so in the part at work."""
        live, at = self._live, self._at
        self._most[at] = max(self._most[at], live.peak_beside)
        self._with_gradients[at] = max(self._with_gradients[at], live.peak - self._apart)
        counted = self._counter.get_total_flops()
        self._operations[at] += counted - self._counted
        products = sum(self._counter.get_flop_counts().get("Global", {}).get(one, 0) for one in _PRODUCTS)
        self._multiplies[at] |= products > self._products
        self._counted, self._products, self._apart = counted, products, live.set_apart
        live.mark()

    def trace(self, number: int, parameters: int) -> PartTrace:
        """What was found of one part."""
        before, after = self._edges[number : number + 2]
        return PartTrace(
            parameters,
            self._taken[number],
            after - before,
            self._most[number] - before,
            self._operations[number],
            with_gradients=self._with_gradients[number] - before,
            multiplies=self._multiplies[number],
        )

    def _back_at(self, number: int) -> None:
        self.close()
        self._at = number


def _judged(
    modules: Sequence[nn.Module], work: Workload, data: Description, key: TraceKey, rows: int
) -> list[_Judged]:
    """Of each part while so many rows are judged: what it takes, the most beside it, and what it makes."""
    if not rows:
        return [_Judged(0, 0, 0)] * len(modules)
    raw, _, inputs, _ = rows_for(work, data, key, rows)
    live = live_bytes((*(value for module in modules for value in held_by(module)), inputs), key)
    carried: Carried = inputs
    found = list[_Judged]()
    with as_judged(key), live:
        for number, module in enumerate(modules):
            before = live.now
            carried = module.eval()(carried)
            taken = before if number else bytes_of((raw, inputs))
            found.append(_Judged(taken, live.peak - before, live.now))
            live.mark()
    return found
