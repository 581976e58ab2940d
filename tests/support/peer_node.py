"""Seats as threads of one process, and the memory of their devices as stretches of the host's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from escala.execution import peer_sums
from escala.execution.lanes import HERE
from escala.execution.symmetric import Symmetric


class Node:
    """Memory of so many seats; `meetings` counts by channel."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._all = threading.Barrier(size, timeout=30)
        self._channels = [threading.Barrier(size, timeout=30) for _ in range(peer_sums.LANES)]
        self._areas: list[Tensor] = []

    def reach(self, rank: int) -> Callable[[int, int], Symmetric]:
        def reached(size: int, lanes: int) -> Symmetric:
            if rank == 0:
                # What lies there at first must not matter.
                self._areas = [torch.full((size,), 255, dtype=torch.uint8) for _ in range(self.size)]
            self._all.wait()
            return Symmetric(self._areas, self._meet, [HERE] * lanes, outside=size)

        return reached

    def _meet(self, channel: int) -> None:
        self._channels[channel].wait()

    def run(self, seat: Callable[[int], object]) -> list[object]:
        with ThreadPoolExecutor(self.size) as pool:
            return list(pool.map(seat, range(self.size)))
