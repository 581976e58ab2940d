"""Memory on the cards of one node into which every one of them can write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from escala.execution.lanes import Lane, lanes
from escala.terms.errors import EscalaError


@dataclass(frozen=True)
class Symmetric:
    """`areas`: by rank, as many bytes (uint8) on each seat's device; writing to another's needs none of its work.

    `meet(channel)`, given to a queue, lets it go on once the same channel of all seats came as far; what was written
    before can be read after. `lanes`: as many queues as channels. `outside`: so many of the own bytes are no part of
    what the device's allocator counts.
    """

    areas: Sequence[Tensor]
    meet: Callable[[int], None]
    lanes: Sequence[Lane]
    outside: int = 0


def symmetric(device: torch.device, size: int, channels: int) -> Symmetric:
    """`size` bytes on the card of every seat of the process group, which all call this.

    Raises `ENV-P2P` where a card cannot write to another's memory.
    """
    from torch.distributed import _symmetric_memory

    group = dist.group.WORLD
    assert group is not None
    before = torch.cuda.memory_allocated(device)
    try:
        own = _symmetric_memory.empty(size, dtype=torch.uint8, device=device)
        own.zero_()
        held = _symmetric_memory.rendezvous(own, group)
    except RuntimeError as error:
        raise EscalaError(
            "ENV-P2P",
            str(device),
            f"memory cannot be shared with the other seats' cards: {str(error).splitlines()[0]}",
            expected="cards of one node that reach each other, as `nvidia-smi topo -p2p rw` tells",
            next_step="leave execution.transport out",
        ) from None
    areas = [held.get_buffer(rank, (size,), torch.uint8) for rank in range(group.size())]
    # The own one as allocated: it keeps the memory alive.
    areas[group.rank()] = own
    # Releases of torch differ in this.
    outside = max(0, size - (torch.cuda.memory_allocated(device) - before))
    # Ahead of the optimiser's step, which has work for a while and would keep others' sums waiting.
    return Symmetric(areas, held.barrier, lanes(device, channels, ahead=True), outside)
