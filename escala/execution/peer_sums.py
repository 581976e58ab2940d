"""Sums of gradients over the cards of one node, carried by their copy engines beside other work.

A collective of NCCL is a kernel: it takes cores from the optimiser's step beside it, and passes every byte through
buffers of its own. Here a part's gradients are cut into as many shards as there are seats. Each seat copies every
shard into the memory of the seat that adds it up, and that one copies the sum into the memory of all: copies are what
engines of their own do, and only the additions, a share of the whole on each card, need cores.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

from escala.execution.gradient_layout import LINE, up
from escala.execution.partial_sums import PARTS, gradient_of, in_parts
from escala.execution.stepping import Arrived
from escala.execution.stretches import Stretch
from escala.execution.symmetric import Symmetric
from escala.terms.errors import EscalaError

LANES = 3
"""So many pieces are under way at once: while one waits for other seats or is added up, others are carried."""
PIECE = 32 * 2**20
"""Bytes that are carried before they are added up; a part is cut into pieces of about that size."""

_ASKED = "transport = shm"


@dataclass(frozen=True)
class _Piece:
    """Elements of a part. Each of its shards is added up by one seat."""

    given: Sequence[tuple[slice, Tensor]]
    """Shards that other seats add up, and where these take them from."""
    own: slice
    taken: Sequence[Tensor]
    """What other seats bring of the own shard."""
    total: Tensor
    """Where the sum of the own shard goes on this seat."""
    told: Sequence[Tensor]
    """Where other seats expect it."""


@dataclass(frozen=True)
class _Part:
    weights: Sequence[nn.Parameter]
    sums: list[Tensor]
    """Where the sums of the weights' gradients come."""
    whole: Tensor
    """All of them as one row of elements."""
    pieces: Sequence[_Piece]
    stretches: Sequence[slice]
    """Elements of a weight that is a part of its own, by piece, where there are several."""


@dataclass(frozen=True)
class _Begun:
    """A part on its way. `source`: this seat's gradients, which must stay until all of them are read."""

    part: _Part
    source: Tensor
    waits: Sequence[Callable[[], None]]


class PeerSums:
    """Adds up gradients over the seats; called by all of them after each step's last backward pass.

    `parameters` have the same shapes in the same order on every seat; `reach` gives memory of so many bytes, and so
    many lanes. Every shard is added up by one seat, so all seats go on with the same bits. `early`: parts are begun
    during the way back, the last one first, as soon as their gradients and those of all before them are there; all
    seats keep to that order, which is the same on each.
    """

    def __init__(
        self,
        parameters: Sequence[nn.Parameter],
        rank: int,
        size: int,
        reach: Callable[[int, int], Symmetric],
        *,
        early: bool = False,
    ) -> None:
        self.wait_s = 0.0
        self._rank = rank
        parts = in_parts(parameters, PARTS)
        if early:
            parts.reverse()
        else:
            # A weight by itself is sent from where it lies, and little is left to do after the last part.
            parts.sort(key=_bytes_of, reverse=True)
        starts = [0, *itertools.accumulate(room_of(part, size) for part in parts)]
        memory = reach(starts[-1], LANES)
        self._meet, self._lanes = memory.meet, memory.lanes
        self.outside = memory.outside
        self._parts = [_laid(part, memory.areas, at, rank) for part, at in zip(parts, starts[:-1], strict=True)]
        self._begun = list[_Begun]()
        self._channel = 0
        self._held = False
        # In the first step the compiler measures kernels, which copies and additions beside them would disturb.
        self._late = True
        # By part, whose gradients the way back has yet to bring; nothing where it is not followed.
        self._awaited = [frozenset(map(id, part.weights)) for part in self._parts] if early else []
        self._missing = [set(part) for part in self._awaited]
        for number, part in enumerate(self._parts if early else ()):
            for weight in part.weights:
                weight.register_post_accumulate_grad_hook(partial(self._came, number))

    def __call__(self) -> Iterator[Arrived]:
        """Begin to make every gradient the sum over the seats; gives each part as soon as later work may use it.

        Raises `MODEL-UNUSED` for a parameter that has none, and `MODEL-SPARSE` for a sparse one; during the way back
        `MODEL-GRADIENT` for one whose gradient comes in pieces.
        """
        for part in self._parts[len(self._begun) :]:
            for weight in part.weights:
                gradient_of(weight, self._rank, _ASKED)
        while len(self._begun) < len(self._parts):
            self._begin()
        begun, self._begun, self._channel = self._begun, [], 0
        self._missing = [set(part) for part in self._awaited]
        self._late = False
        return _in_turn(begun)

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Gradients that come within are not complete: another pass will add to them."""
        self._held = True
        try:
            yield
        finally:
            self._held = False

    def _came(self, number: int, weight: Tensor) -> None:
        if self._held or self._late:
            return
        if number < len(self._begun):
            raise EscalaError(
                "MODEL-GRADIENT",
                f"rank {self._rank}",
                f"a parameter of shape {tuple(weight.shape)} got one more gradient when the first was on its way",
                next_step='set execution.overlap = "optimizer", with which all wait for the end of the way back',
            )
        self._missing[number].discard(id(weight))
        while len(self._begun) < len(self._parts) and not self._missing[len(self._begun)]:
            self._begin()

    def _begin(self) -> None:
        """Begin the next part."""
        part = self._parts[len(self._begun)]
        source = _as_row(part, [gradient_of(weight, self._rank, _ASKED) for weight in part.weights])
        self._begun.append(_Begun(part, source, [self._carry(piece, source) for piece in part.pieces]))
        for weight, total in zip(part.weights, part.sums, strict=True):
            weight.grad = total

    def _carry(self, piece: _Piece, source: Tensor) -> Callable[[], None]:
        channel, self._channel = self._channel, (self._channel + 1) % len(self._lanes)
        lane = self._lanes[channel]
        with lane.begin():
            for shard, there in piece.given:
                there.copy_(source[shard])
            self._meet(channel)
            own = source[piece.own]
            for addend in piece.taken:
                own = torch.add(own, addend, out=piece.total)
            if not piece.taken:
                piece.total.copy_(own)
            for there in piece.told:
                there.copy_(piece.total)
            self._meet(channel)
            return lane.joined()


def _as_row(part: _Part, gradients: list[Tensor]) -> Tensor:
    """All elements of the gradients, from where they lie if that is one place, or else from where sums will come."""
    first = gradients[0]
    if first.numel() == part.whole.numel() and first.stride() == part.sums[0].stride():
        return first.as_strided((first.numel(),), (1,))
    torch._foreach_copy_(part.sums, gradients)
    return part.whole


def _in_turn(begun: Sequence[_Begun]) -> Iterator[Arrived]:
    for part, waits in ((one.part, one.waits) for one in begun):
        for wait, elements in itertools.zip_longest(waits, part.stretches):
            wait()
            if elements is not None:
                yield Stretch(part.weights[0], part.sums[0], elements)
        if not part.stretches:
            yield list(zip(part.weights, part.sums, strict=True))


def room_of(part: Sequence[nn.Parameter], size: int) -> int:
    """Bytes for a part on each of `size` seats: its sums, and what others bring of the own shards."""
    shards = [up(-(-length // size)) for _, length in _cuts(_bytes_of(part))]
    return _bytes_of(part) + (size - 1) * sum(shards)


def _bytes_of(part: Sequence[nn.Parameter]) -> int:
    return sum(up(weight.nbytes) for weight in part)


def _cuts(whole: int) -> list[tuple[int, int]]:
    """First byte and length of each piece."""
    step = max(LINE, up(-(-whole // max(1, round(whole / PIECE)))))
    return [(at, min(step, whole - at)) for at in range(0, whole, step)]


def _laid(part: Sequence[nn.Parameter], areas: Sequence[Tensor], start: int, rank: int) -> _Part:
    size, kind, whole = len(areas), part[0].dtype, _bytes_of(part)
    others = [other for other in range(size) if other != rank]

    def numbers(of: int, at: int, length: int) -> Tensor:
        return areas[of][start + at : start + at + length].view(kind)

    sums, at = list[Tensor](), 0
    for weight in part:
        # Dense, in the parameter's order of dimensions, so that a layout of images stays.
        strides = torch.empty_like(weight, device="meta").stride()
        sums.append(numbers(rank, at, weight.nbytes).as_strided(weight.shape, strides))
        at += up(weight.nbytes)

    pieces, slots, cuts = list[_Piece](), whole, _cuts(whole)
    for first, length in cuts:
        shard = up(-(-length // size))
        bounds = [(first + min(one * shard, length), first + min((one + 1) * shard, length)) for one in range(size)]
        many = [last - begin for begin, last in bounds]

        def slot(of: int, sender: int, base: int = slots, shard: int = shard, many: list[int] = many) -> Tensor:
            return numbers(of, base + (sender - (sender > of)) * shard, many[of])

        elements = [slice(begin // kind.itemsize, last // kind.itemsize) for begin, last in bounds]
        own, mine = bounds[rank][0], many[rank]
        pieces.append(
            _Piece(
                [(elements[other], slot(other, rank)) for other in others],
                elements[rank],
                [slot(rank, other) for other in others],
                numbers(rank, own, mine),
                [numbers(other, own, mine) for other in others],
            )
        )
        slots += (size - 1) * shard
    alone = len(part) == 1 and len(cuts) > 1
    ends = [*(first // kind.itemsize for first, _ in cuts), part[0].numel()] if alone else []
    return _Part(part, sums, numbers(rank, 0, whole), pieces, [slice(*two) for two in itertools.pairwise(ends)])
