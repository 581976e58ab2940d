"""What the stages of a pipeline send each other: tensors whose shapes both sides know. No pickle, no objects.

What a stage gives for rows of a new shape is told once, in a line of whole numbers; from then on both sides know it.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor

from escala.strategies.line import Channels
from escala.strategies.parts import Carried, tensors_of
from escala.terms.errors import Unfit

_DTYPES = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.bool,
)
_LINE = 128
_PENDING = 8
"""Most tensors that were sent and may not have gone; what they hold would else stay in memory for the whole step."""
_TOLD = 1
"""Tag of lines that tell what will come, so that they cannot be taken for it."""


class Kind(NamedTuple):
    """What both sides know of one tensor. `learns`: its gradient is sent back. `last`: its channels lie last."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    learns: bool
    last: bool


class Form(NamedTuple):
    """What both sides know of what goes from one stage to the next; `bare`: a tensor that is in no tuple."""

    bare: bool
    kinds: tuple[Kind, ...]

    @property
    def learning(self) -> tuple[Kind, ...]:
        return tuple(kind for kind in self.kinds if kind.learns)


class Awaited:
    """Tensors that are on their way. `wait` returns them, once, and lets this device's later work wait for them."""

    def __init__(self, buffers: Sequence[Tensor], works: Sequence[Any], to: torch.device) -> None:
        self._buffers, self._works, self._to = buffers, works, to

    def wait(self) -> list[Tensor]:
        """As sent."""
        for work in self._works:
            work.wait()
        return [buffer.to(self._to) for buffer in self._buffers]


class Relay:
    """One seat's exchange with the seats of the stages beside its own."""

    def __init__(self, device: torch.device, channels: Channels) -> None:
        self._channels = channels
        self._rank = dist.get_rank()
        self._device = device
        # gloo takes tensors in host memory alone.
        self._by_way_of = torch.device("cpu") if dist.get_backend() == "gloo" else device
        self._forms = dict[Hashable, Form]()
        self._sent = deque[tuple[Any, Tensor]]()

    def send(self, carried: object, peer: int, key: Hashable) -> Form:
        """What a stage made, to the seat of the next one. Whatever has the same `key` must have the same form."""
        tensors, group = tensors_of(carried), self._channels.ahead[self._rank, peer]
        form = self._forms.get(key)
        if form is None:
            form = self._forms[key] = Form(isinstance(carried, Tensor), tuple(kind_of(one) for one in tensors))
            line = told(form)
            self._keep(dist.isend(line, peer, group, tag=_TOLD), line)
        self._post(zip(form.kinds, tensors, strict=True), peer, group)
        return form

    def receive(self, peer: int, key: Hashable) -> tuple[Form, Awaited]:
        """What the seat of the stage before sends under this key."""
        form, group = self._forms.get(key), self._channels.ahead[peer, self._rank]
        if form is None:
            line = torch.empty(_LINE, dtype=torch.int64)
            dist.recv(line, peer, group, tag=_TOLD)
            form = self._forms[key] = understood(line)
        return form, self._await(form.kinds, peer, group)

    def send_back(self, form: Form, gradients: Sequence[Tensor], peer: int) -> None:
        """The gradients of what was received, of each tensor that learns."""
        self._post(zip(form.learning, gradients, strict=True), peer, self._channels.back[self._rank, peer])

    def receive_back(self, form: Form, peer: int) -> Awaited:
        """The gradients of what was sent."""
        return self._await(form.learning, peer, self._channels.back[peer, self._rank])

    def finish(self) -> None:
        """Wait until all that was sent has gone."""
        while self._sent:
            self._sent.popleft()[0].wait()

    def _post(self, tensors: Any, peer: int, group: Any) -> None:
        for kind, one in tensors:
            line = _plain(one.detach(), kind).to(self._by_way_of).contiguous()
            if line.numel():
                self._keep(dist.isend(line, peer, group), line)

    def _keep(self, work: Any, line: Tensor) -> None:
        """Hold what is sent until it has gone. Peers receive in the order of sending, so to wait for it is safe."""
        self._sent.append((work, line))
        while self._sent and (len(self._sent) > _PENDING or self._sent[0][0].is_completed()):
            self._sent.popleft()[0].wait()

    def _await(self, kinds: Sequence[Kind], peer: int, group: Any) -> Awaited:
        buffers, works = list[Tensor](), list[Any]()
        for kind in kinds:
            layout = torch.channels_last if kind.last else torch.contiguous_format
            buffer = torch.empty(kind.shape, dtype=kind.dtype, device=self._by_way_of, memory_format=layout)
            buffers.append(buffer)
            if buffer.numel():
                works.append(dist.irecv(_plain(buffer, kind), peer, group))
        return Awaited(buffers, works, self._device)


def carried_of(form: Form, tensors: Sequence[Tensor]) -> Carried:
    """What was sent, as the stage before gave it."""
    return tensors[0] if form.bare else tuple(tensors)


def _plain(tensor: Tensor, kind: Kind) -> Tensor:
    """The same numbers in the order in which they lie, where it has channels last."""
    return tensor.permute(0, 2, 3, 1) if kind.last else tensor


def kind_of(tensor: Tensor) -> Kind:
    """What the other side must know of a tensor. Raises `Unfit` for a format that cannot be sent."""
    if tensor.dtype not in _DTYPES:
        raise Unfit(f"a block gives numbers of the format {tensor.dtype}, which cannot be sent from stage to stage")
    last = tensor.ndim == 4 and not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)
    return Kind(tuple(tensor.shape), tensor.dtype, tensor.requires_grad, last)


def told(form: Form) -> Tensor:
    """A form as whole numbers, int64 [128]. Raises `Unfit` where they do not suffice."""
    numbers = [int(form.bare), len(form.kinds)]
    for kind in form.kinds:
        numbers += [_DTYPES.index(kind.dtype), int(kind.learns), int(kind.last), len(kind.shape), *kind.shape]
    if len(numbers) > _LINE:
        raise Unfit(f"a block gives {len(form.kinds)} tensors, more than can be told of")
    return torch.tensor(numbers + [0] * (_LINE - len(numbers)), dtype=torch.int64)


def understood(line: Tensor) -> Form:
    """The form that `told` gave."""
    numbers = iter(line.tolist())
    bare, many = next(numbers), next(numbers)
    kinds = list[Kind]()
    for _ in range(many):
        dtype, learns, last, dimensions = itertools.islice(numbers, 4)
        kinds.append(Kind(tuple(itertools.islice(numbers, dimensions)), _DTYPES[dtype], bool(learns), bool(last)))
    return Form(bool(bare), tuple(kinds))
