"""What every meter is: something started, stopped and read; and what reads the power of a part of the machine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal, NamedTuple

from msgspec import Struct, field

from escala.terms.host import Host
from escala.terms.record import How, Reading

Part = Literal["device", "cpu", "memory"]


class Meter(ABC):
    """Reads one physical quantity between `start` and `stop`. Both raise `Unavailable(reason)`."""

    @abstractmethod
    def start(self) -> None:
        """Begin."""

    @abstractmethod
    def stop(self) -> tuple[Reading, ...]:
        """End, and what was read since `start`."""


class Bench(Struct, frozen=True):
    """What a power meter may know before it opens. `covered`: names of parts that an earlier meter reads already.

    Those names are the channels' own: `cuda:0`, or a board's UUID; `cpu` once any processor package is read.
    `tdp_w` is `measure.tdp_w`.
    """

    host: Host
    environment: Mapping[str, str] = field(default_factory=dict)
    tdp_w: Mapping[str, float] = field(default_factory=dict)
    covered: frozenset[str] = frozenset()


class Channel(Struct, frozen=True):
    """One part of the machine whose energy can be read, or a `reason` why it cannot.

    `where` names it: the framework's name of a device that it numbers (`cuda:0`), a board's UUID where it does not,
    `package-0`, `dram-0`. `joules` and `watts` tell how each is known; None: it is not read. `update_s` is how often
    the source renews what it says, `limit_w` the most that the part may draw.
    """

    where: str
    part: Part
    joules: How | None = None
    watts: How | None = None
    update_s: float = 0.0
    limit_w: float | None = None
    reason: str | None = None


class Sample(NamedTuple):
    """What a channel says at one moment.

    `joules` have been used since some moment in the past: a counter that wraps round is continued by its meter.
    `utilisation` is a share, `clock_mhz` that of the processors, `temperature_c` in degrees Celsius, `throttled`
    whether heat, power or a fault holds it back, `memory_bytes` in use, `processes` the numbers of those on it.
    `reason` says why nothing could be read this time.
    """

    joules: float | None = None
    watts: float | None = None
    utilisation: float | None = None
    clock_mhz: float | None = None
    temperature_c: float | None = None
    throttled: bool | None = None
    memory_bytes: int | None = None
    processes: tuple[int, ...] = ()
    reason: str | None = None


class PowerMeter(ABC):
    """Reads parts of the machine in the process that is idle while trials run: the campaign's parent.

    Its opener takes a `Bench` and raises `Unavailable(reason)` where it can read nothing at all. Where only a part
    cannot be read, that channel has a reason. `read` never raises: a part that vanishes gives samples with a reason.
    """

    @property
    @abstractmethod
    def channels(self) -> tuple[Channel, ...]:
        """What it reads, each part once."""

    @abstractmethod
    def read(self) -> tuple[Sample, ...]:
        """All channels now, in their order."""

    @abstractmethod
    def close(self) -> None:
        """Give back what it holds open."""
