"""The seats of one trial as a group that can exchange a few numbers at the edges of a timed window."""

from __future__ import annotations

import gc
import os
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from escala.execution.capture import leave_errors_to_the_parent
from escala.terms.trial import Seat

Numbers = list[float]


class Group:
    """This seat's place among a trial's seats, and the exchange between them. With one seat nothing is sent.

    The rows are divided into `shares`, of which number `share` is this seat's, with as many `partners` as work on it
    (itself included) and of whom one `tells` what comes of it.
    """

    def __init__(
        self, rank: int, size: int, *, share: int | None = None, shares: int | None = None, tells: bool = True
    ) -> None:
        self.rank = rank
        self.size = size
        self.share = rank if share is None else share
        self.shares = size if shares is None else shares
        self.partners = self.size // self.shares
        self.tells = tells

    def gather(self, numbers: Sequence[float]) -> list[Numbers]:
        """These numbers of every seat, by rank. Also a meeting point: returns when all seats have called it."""
        if self.size == 1:
            return [list(numbers)]
        table = torch.zeros(self.size, len(numbers), dtype=torch.float64)
        table[self.rank] = torch.tensor(numbers, dtype=torch.float64)
        # Every row but the own one is zero, so the sum is the table; a host tensor goes by gloo, never by NCCL.
        dist.all_reduce(table)
        return [[float(number) for number in row] for row in table.tolist()]

    def add_up(self, numbers: torch.Tensor) -> torch.Tensor:
        """The sum over seats of a tensor in host memory."""
        if self.size > 1:
            dist.all_reduce(numbers)
        return numbers


def group_of(seats: Sequence[Seat], rank: int) -> Group:
    """The group of a trial's seats, as one of them sees it. Replicas have equally many seats."""
    own = seats[rank]
    return Group(rank, len(seats), share=own.share, shares=len({seat.share for seat in seats}), tells=own.tells)


def meet(
    seats: Sequence[Seat], rank: int, private: Path, timeout_s: float, *, needs_group: bool, captured: bool = False
) -> Group:
    """Join the seats of this node through a file in the private folder; no socket listens beyond loopback.

    `captured`: collectives are going to be recorded in graphs.
    """
    if needs_group:
        # gloo and NCCL otherwise take the interface that the host's name resolves to, if it resolves at all.
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = _loopback()
        store = dist.FileStore(str(private / "store"), len(seats))  # type: ignore[attr-defined]
        open_group(store, seats, rank, timeout_s, captured=captured)
    return group_of(seats, rank)


def open_group(store: Any, seats: Sequence[Seat], rank: int, timeout_s: float, *, captured: bool = False) -> None:
    """Start torch's process group over a torch store. Raises what torch raises."""
    if captured:
        leave_errors_to_the_parent()
    devices = [device for seat in seats for device in seat.devices]
    on_gpu = devices[0].startswith("cuda")
    shared = len(set(zip((seat.node for seat in seats), devices, strict=True))) < len(devices)
    if on_gpu:
        torch.cuda.set_device(torch.device(seats[rank].devices[0]))
    dist.init_process_group(
        # NCCL refuses two ranks on one card; simulated seats therefore meet through gloo.
        "cpu:gloo,cuda:nccl" if on_gpu and not shared else "gloo",
        store=store,
        rank=rank,
        world_size=len(seats),
        timeout=timedelta(seconds=timeout_s),
    )


def leave() -> None:
    """End the process group, if there is one. The learner that exchanged gradients in it must be out of use.

    DDP's parts refer to each other and to the group, so that they would outlive it until the interpreter ends: a
    thread of gloo's that then lets go of a Python object ends the process with SIGABRT.
    """
    if dist.is_available() and dist.is_initialized():
        gc.collect()
        dist.destroy_process_group()


def _loopback() -> str:
    return "lo0" if Path("/System/Library").exists() else "lo"
