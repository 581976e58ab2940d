"""How busy the processor is with work that is not ours."""

from __future__ import annotations

import os
from typing import NamedTuple

from escala.meters.processor import cpu_seconds


class ProcessorTime(NamedTuple):
    """Seconds of all cores since the machine began: busy in all, and for this process and children that ended."""

    busy: float
    own: float


def processor_time() -> ProcessorTime:
    """Both, now. A container counts the whole machine as busy, whose energy its meters read."""
    busy, _ = cpu_seconds()
    return ProcessorTime(busy, sum(os.times()[:4]))


def other_load(begin: ProcessorTime, end: ProcessorTime) -> float | None:
    """Share of the busy time between the two that was not our own; None where there was none."""
    busy = end.busy - begin.busy
    if busy <= 0:
        return None
    return min(1.0, max(0.0, 1 - (end.own - begin.own) / busy))
