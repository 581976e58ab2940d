"""Peak memory of a seat: of its process, and of what the framework's allocator took on each device."""

from __future__ import annotations

import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import torch

from escala.meters.base import Meter
from escala.terms.record import Reading

# getrusage counts in bytes on macOS and in KiB elsewhere.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024


def peak_resident() -> int:
    """Most bytes of memory that this program has held since it began."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT
    # What getrusage says on Linux includes the peak of the process that started this one.
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


class MemoryMeter(Meter):
    """Peak bytes by device. `cpu` is the resident size of this process since it began, libraries included."""

    def __init__(self, devices: Sequence[str]) -> None:
        self._devices = tuple(devices)

    def start(self) -> None:
        # Before the first use of a GPU there is no peak to reset, and asking for it is an error.
        for name in self._cuda() if torch.cuda.is_initialized() else ():
            torch.cuda.reset_peak_memory_stats(torch.device(name))

    def stop(self) -> tuple[Reading, ...]:
        readings = [Reading("peak memory", "cpu", float(peak_resident()), "B", "counter")]
        for name in self._cuda():
            peak = torch.cuda.max_memory_allocated(torch.device(name))
            readings.append(Reading("peak memory", name, float(peak), "B", "counter"))
        return tuple(readings)

    def _cuda(self) -> tuple[str, ...]:
        return tuple(name for name in self._devices if name.startswith("cuda"))


def with_outside(readings: Sequence[Reading], device: str, more: int) -> tuple[Reading, ...]:
    """The same with so many bytes more in the peak of a device, which are there all the time and no meter counts."""
    return tuple(
        msgspec.structs.replace(one, value=one.value + more)
        if (one.what, one.where) == ("peak memory", device) and one.value is not None
        else one
        for one in readings
    )
