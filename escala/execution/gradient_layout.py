"""Where the gradients of a network lie in one flat stretch of memory."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

LINE = 64
"""Bytes of a cache line: gradients begin at one, so that no two seats ever write into the same."""

Memory = mmap.mmap | bytearray


@dataclass(frozen=True)
class Layout:
    """Where each parameter's gradient lies in a slot: byte and shape; where the elements of each format lie."""

    places: tuple[tuple[int, torch.dtype, tuple[int, ...], tuple[int, ...]], ...]
    """Byte, format, shape and strides of each."""
    segments: dict[torch.dtype, tuple[int, int]]
    """First byte and number of elements by format."""
    room: int
    """Bytes of a slot."""

    def view(self, memory: Memory, start: int, number: int) -> Tensor:
        """The gradient of parameter `number` in the slot that begins at byte `start`."""
        at, kind, shape, strides = self.places[number]
        flat = torch.frombuffer(memory, dtype=kind, count=max(1, math.prod(shape)), offset=start + at)
        return flat.as_strided(shape, strides)

    def parts(self, memory: Memory, start: int, rank: int = 0, size: int = 1) -> list[Tensor]:
        """Of each format, a rank's share of all elements in that slot, cut between cache lines; it may be empty."""
        found = list[Tensor]()
        for kind, (at, count) in self.segments.items():
            flat = torch.frombuffer(memory, dtype=kind, count=count, offset=start + at)
            step = LINE // flat.element_size()
            first, last = (step * (count // step * number // size) for number in (rank, rank + 1))
            found.append(flat[first:last])
        return found


def laid_out(parameters: Sequence[nn.Parameter]) -> Layout:
    """All gradients one after another, those of a format together, each in the strides of its parameter."""
    places = dict[int, tuple[int, torch.dtype, tuple[int, ...], tuple[int, ...]]]()
    segments = dict[torch.dtype, tuple[int, int]]()
    room = 0
    for kind in dict.fromkeys(parameter.dtype for parameter in parameters):
        begin = room
        for number, parameter in enumerate(parameters):
            if parameter.dtype is kind:
                # Dense strides in the parameter's order of dimensions, also where it is itself a view with gaps.
                strides = torch.empty_like(parameter, device="meta").stride()
                places[number] = (room, kind, tuple(parameter.shape), strides)
                room += up(max(1, parameter.numel()) * parameter.element_size())
        segments[kind] = (begin, (room - begin) // kind.itemsize)
    return Layout(tuple(places[number] for number in range(len(parameters))), segments, room)


def up(size: int) -> int:
    """The next multiple of a cache line, bytes."""
    return -(-size // LINE) * LINE
