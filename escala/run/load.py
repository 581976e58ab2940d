"""How busy the processor is with work that is not ours."""

from __future__ import annotations

import os
from typing import NamedTuple

import psutil


class ProcessorTime(NamedTuple):
    """Seconds of all cores since the machine began: busy in all, and for this process and children that ended."""

    busy: float
    own: float


def processor_time() -> ProcessorTime:
    """Both, now. A container counts the whole machine as busy, whose energy its meters read."""
    spent, own = psutil.cpu_times(), os.times()
    waiting = spent.idle + getattr(spent, "iowait", 0.0)
    return ProcessorTime(sum(spent) - waiting - _counted_twice(spent), sum(own[:4]))


def other_load(begin: ProcessorTime, end: ProcessorTime) -> float | None:
    """Share of the busy time between the two that was not our own; None where there was none."""
    busy = end.busy - begin.busy
    if busy <= 0:
        return None
    return min(1.0, max(0.0, 1 - (end.own - begin.own) / busy))


def _counted_twice(spent: object) -> float:
    # Linux counts the time of guests in that of users as well.
    return float(getattr(spent, "guest", 0.0) + getattr(spent, "guest_nice", 0.0))
