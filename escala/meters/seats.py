"""The table of meters that a seat reads about itself. Imports torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from escala.meters.base import Meter
from escala.meters.memory import MemoryMeter

SEAT_METERS: dict[str, Callable[[Sequence[str]], Meter]] = {
    "memory": MemoryMeter,
}
