"""Sums of gradients over the seats of one node through memory that they share, without sockets.

Each seat writes its gradients into a slot of its own and adds up the slots in the order of the ranks, so that all
seats go on with the same bits. gloo moves the same bytes through sockets, for which its threads need the cores that
compute: on two cores that costs more than the sum itself.
"""

from __future__ import annotations

import itertools
import mmap
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from escala.execution.common_memory import common_memory
from escala.execution.gradient_layout import LINE, Layout, laid_out, up
from escala.terms.errors import EscalaError

# Looks at a counter, in less than a tenth of a millisecond, before the core is offered to others; seconds of offers
# before sleeping; seconds of sleep. Seats in step meet within the first, and a busy machine gets its core back.
_LOOKS = 1000
_OFFERS_S = 0.005
_NAP_S = 0.0001
_WAIT_S = 600.0
_SHOWN = 5
# Up to so many seats each adds up everything for itself, which spares them the second meeting.
_ADDED_BY_ALL = 3


@dataclass(frozen=True)
class _Buffers:
    """Where the gradients of a step go: the own slot, everybody's marks, and what is to be added up to what."""

    written: list[Tensor]
    marks: Sequence[Tensor]
    """By rank, for each parameter 1 where that seat has a gradient."""
    sums: Sequence[tuple[Sequence[Tensor], Tensor]]


class SharedSum:
    """Adds up gradients over the seats; called by all of them after each step's last backward pass.

    `parameters` have the same shapes in the same order on every seat. With `detect`, parameters may be left without a
    gradient, and keep none where no seat has one. A process group must exist; it is asked once, where the memory is.

    Up to three seats add up all slots each, and meet once a step; there are two sets of slots, so that nobody writes
    what another still reads. More seats add up a slice each, meet again and copy the whole: two reads, not many.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], rank: int, size: int, *, detect: bool = False) -> None:
        self.wait_s = _WAIT_S
        # On a processor all that the process has is counted.
        self.outside = 0
        self._parameters = parameters
        self._rank = rank
        self._detect = detect
        layout = laid_out(parameters)
        slot = layout.room + up(len(parameters))
        head = (1 + size) * LINE
        spread = size > _ADDED_BY_ALL
        memory = common_memory(head + (size + 1 if spread else 2 * size) * slot, rank)
        self._turn = 0
        self._told = memoryview(memory)[LINE:head].cast("q")
        self._own = rank * LINE // 8
        self._others = [other * LINE // 8 for other in range(size) if other != rank]
        self._fence = threading.Lock()
        self._fence.acquire()
        # The gradients of this seat alone, which clipping and optimisers may change.
        private = mmap.mmap(-1, layout.room)
        self._mine = [layout.view(private, 0, number) for number in range(len(parameters))]
        slots = [head + number * slot for number in range(2 * size)]
        whole = layout.parts(private, 0)
        if spread:
            common = head + size * slot
            share = layout.parts(memory, common, rank, size)
            self._sets = [_buffers(layout, memory, slots[:size], rank, size, share)]
            self._copies = list(zip(whole, layout.parts(memory, common), strict=True))
        else:
            self._sets = [_buffers(layout, memory, slots[at : at + size], rank, 1, whole) for at in (0, size)]
            self._copies = []
        self._meet()

    def __call__(self) -> None:
        """Make every parameter's gradient the sum over the seats.

        Raises `MODEL-UNUSED` for one that has none and `MODEL-SPARSE` for a sparse one; `ENV-SEAT` naming the rank
        that did not come within `wait_s` seconds.
        """
        now, *later = self._sets
        self._sets = [*later, now]
        torch._foreach_copy_(now.written, self._gathered(now.marks[self._rank]))
        self._meet()
        for slots, result in now.sums:
            add_up(slots, result)
        anywhere = torch.stack([*now.marks]).amax(0).tolist() if self._detect else itertools.repeat(1)
        if self._copies:
            self._meet()
            for private, common in self._copies:
                private.copy_(common)
        for parameter, view, kept in zip(self._parameters, self._mine, anywhere, strict=False):
            parameter.grad = view if kept else None

    def _gathered(self, marks: Tensor) -> list[Tensor]:
        found = [parameter.grad for parameter in self._parameters]
        missing = [number for number, gradient in enumerate(found) if gradient is None]
        if missing and not self._detect:
            shapes = ", ".join(str(tuple(self._parameters[number].shape)) for number in missing[:_SHOWN])
            raise EscalaError(
                "MODEL-UNUSED",
                f"rank {self._rank}",
                f"{len(missing)} parameters got no gradient in a step, of shape {shapes}",
                next_step='take them out, or set execution.unused = "detect", which looks for them in every step',
            )
        if any(gradient is not None and gradient.layout is not torch.strided for gradient in found):
            raise EscalaError(
                "MODEL-SPARSE",
                f"rank {self._rank}",
                "transport = shm cannot add up sparse gradients",
                next_step="make the embedding dense, or leave execution.transport out",
            )
        if self._detect:
            marks[:] = torch.tensor([gradient is not None for gradient in found], dtype=torch.uint8)
        return [
            torch.zeros_like(parameter) if gradient is None else gradient
            for gradient, parameter in zip(found, self._parameters, strict=True)
        ]

    def _meet(self) -> None:
        """Returns when all seats have called it as often as this one."""
        self._turn += 1
        self._order()
        self._told[self._own] = self._turn
        for other in self._others:
            for _ in range(_LOOKS):
                if self._told[other] >= self._turn:
                    break
            else:
                self._await(other)
        self._order()

    def _await(self, other: int) -> None:
        began = time.monotonic()
        while self._told[other] < self._turn:
            waited = time.monotonic() - began
            if waited < _OFFERS_S:
                os.sched_yield()
            elif waited < self.wait_s:
                time.sleep(_NAP_S)
            else:
                raise EscalaError(
                    "ENV-SEAT",
                    f"rank {self._rank}",
                    f"waited {self.wait_s:g} s for rank {other * 8 // LINE} to bring its gradients",
                    next_step="look into that rank's log; measure.stall_s is the longest wait",
                )

    def _order(self) -> None:
        """Keep what was written before from being seen after: processors other than x86 need to be told.

        Letting go of a lock and taking it again is the one thing in Python that surely does so.
        """
        self._fence.release()
        self._fence.acquire()


def _buffers(
    layout: Layout, memory: mmap.mmap, slots: Sequence[int], rank: int, shares: int, results: Sequence[Tensor]
) -> _Buffers:
    """For slots that begin at these bytes, and the whole of them or, with several shares, this rank's share."""
    count = len(layout.places)
    parts = [layout.parts(memory, start, rank if shares > 1 else 0, shares) for start in slots]
    marks = [torch.frombuffer(memory, dtype=torch.uint8, count=count, offset=at + layout.room) for at in slots]
    return _Buffers(
        [layout.view(memory, slots[rank], number) for number in range(count)],
        marks,
        [([part[kind] for part in parts], result) for kind, result in enumerate(results)],
    )


def add_up(slots: Sequence[Tensor], result: Tensor) -> None:
    """The sum in the order of the ranks; formats of 16 bits are rounded once, at the end."""
    if result.element_size() < 4 and len(slots) > 2:
        total = slots[0].float()
        for slot in slots[1:]:
            total += slot
        result.copy_(total)
        return
    torch.add(slots[0], slots[1], out=result)
    for slot in slots[2:]:
        result += slot
