"""By what way the gradients of several seats meet, and where that way is closed."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from escala.execution.exchange import asked
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec
from escala.terms.trial import Seat


def check_transport(execution: ExecutionSpec, kind: str, seats: Sequence[Seat]) -> None:
    """Raises `Unfit` where `seats` on devices of one kind cannot exchange gradients as `execution.transport` says."""
    if execution.transport is None:
        return
    between_gpus = execution.copies_between(kind)
    if kind != "cpu" and not between_gpus:
        raise Unfit(
            f"transport = {execution.transport} is for gradients in the host's memory; {kind} has its own way"
        )
    if execution.transport == "gloo":
        return
    if (nodes := len({seat.node for seat in seats})) > 1:
        raise Unfit(f"transport = shm joins the seats of one node; these sit on {nodes}")
    if between_gpus:
        _check_gpus(execution, seats)
        # Either goes with it; on a processor it lies between the two.
        execution = msgspec.structs.replace(execution, overlap="backward")
    elif sys.platform != "linux":
        raise Unfit("transport = shm needs memory without a name, which only Linux has")
    if found := asked(execution):
        raise Unfit(f"transport = shm exchanges gradients without DDP, to which {' and '.join(found)} would belong")


def _check_gpus(execution: ExecutionSpec, seats: Sequence[Seat]) -> None:
    if len({seat.devices for seat in seats}) < len(seats):
        raise Unfit("transport = shm joins the memory of several GPUs, and here seats share one")
    if execution.unused == "detect":
        raise Unfit("unused = detect is DDP's, and transport = shm exchanges the gradients of GPUs without it")
