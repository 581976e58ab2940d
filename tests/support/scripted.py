"""Power meters whose readings are written down beforehand."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import final

from escala.meters.base import Bench, Channel, PowerMeter, Sample
from escala.meters.sampler import Samples
from escala.terms.errors import Unavailable


@final
class Scripted(PowerMeter):
    """Tells what `script` has for a moment, one sample a channel."""

    def __init__(
        self,
        channels: Sequence[Channel],
        script: Callable[[float], tuple[Sample, ...]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._channels = tuple(channels)
        self._script = script
        self._clock = clock
        self.closed = False

    @property
    def channels(self) -> tuple[Channel, ...]:
        return self._channels

    def read(self) -> tuple[Sample, ...]:
        return self._script(self._clock())

    def close(self) -> None:
        self.closed = True


PACKAGE = Channel("package-0", "cpu", joules="counter", update_s=0.0001)


def steady(bench: Bench) -> PowerMeter:
    """A processor that takes 100 W, by its counter."""
    return Scripted([PACKAGE], lambda now: (Sample(joules=100 * now),))


def frozen(bench: Bench) -> PowerMeter:
    """A processor whose counter never moves."""
    return Scripted([PACKAGE], lambda _: (Sample(joules=7.0),))


def backwards(bench: Bench) -> PowerMeter:
    """A processor whose counter runs backwards."""
    return Scripted([PACKAGE], lambda now: (Sample(joules=-now),))


def vanishing(bench: Bench) -> PowerMeter:
    """A processor that no longer answers after the third time."""
    answers = iter(range(3))
    return Scripted(
        [PACKAGE],
        lambda now: (Sample(reason="the file is gone") if next(answers, None) is None else Sample(joules=now),),
    )


def absent(bench: Bench) -> PowerMeter:
    """A meter with nothing to read."""
    raise Unavailable("no such counter here")


def written(channels: Sequence[Channel], seconds: Sequence[float], *columns: Sequence[Sample]) -> Samples:
    """Samples as a sampler gathers them, one column a channel."""
    return Samples(tuple(channels), tuple(seconds), tuple(zip(*columns, strict=True)))
