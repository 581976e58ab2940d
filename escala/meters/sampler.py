"""Reads power meters again and again from a thread of its own, and at once when asked to."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import final

from escala.meters.base import Channel, PowerMeter, Sample


@dataclass(frozen=True)
class Samples:
    """What was read: the channels, the moments (seconds on the sampler's clock), and one row of samples each."""

    channels: tuple[Channel, ...]
    seconds: tuple[float, ...]
    rows: tuple[tuple[Sample, ...], ...]


@final
class Sampler:
    """Samples of all meters from `start` to `end`, `every_s` seconds apart, and between them whenever asked."""

    def __init__(
        self, meters: Sequence[PowerMeter], every_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._meters = tuple(meters)
        self._every_s = every_s
        self._clock = clock
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._seconds = list[float]()
        self._rows = list[tuple[Sample, ...]]()
        self._thread = threading.Thread(target=self._sample, name="power", daemon=True)

    def start(self) -> None:
        """Read once, and from now on at the interval."""
        self.read()
        self._thread.start()

    def read(self) -> None:
        """Read now, besides the interval: at the edge of a phase."""
        with self._lock:
            before = self._clock()
            row = tuple(sample for meter in self._meters for sample in _read(meter))
            # A reading takes a while, and stands for its middle.
            self._seconds.append((before + self._clock()) / 2)
            self._rows.append(row)

    def end(self) -> None:
        """Read a last time, and no more."""
        self._over.set()
        self._thread.join()
        self.read()

    def samples(self) -> Samples:
        """All that was read."""
        channels = tuple(channel for meter in self._meters for channel in meter.channels)
        return Samples(channels, tuple(self._seconds), tuple(self._rows))

    def _sample(self) -> None:
        due = self._clock() + self._every_s
        while not self._over.wait(max(0.0, due - self._clock())):
            self.read()
            # A reading that took too long is not made up for by several at once.
            due = max(due + self._every_s, self._clock())


def _read(meter: PowerMeter) -> tuple[Sample, ...]:
    """What a meter says. A person's own may break its promise not to raise: that costs its readings, not the run."""
    try:
        row = meter.read()
    except Exception as error:
        return tuple(Sample(reason=f"{type(error).__name__}: {error}") for _ in meter.channels)
    if len(row) != len(meter.channels):
        return tuple(Sample(reason=f"{len(row)} samples of {len(meter.channels)} parts") for _ in meter.channels)
    return row
