"""Which power meters read something on this machine, and why the others do not."""

from __future__ import annotations

import os

from msgspec import Struct

from escala.meters import POWER_METERS
from escala.meters.base import Bench, Channel
from escala.terms.errors import Unavailable
from escala.terms.host import Host


class MeterFound(Struct, frozen=True):
    """A power meter of the table: its channels, or the reason why there are none."""

    name: str
    channels: tuple[Channel, ...] = ()
    reason: str | None = None


def meters_of(host: Host) -> tuple[MeterFound, ...]:
    """Every meter of the table, opened and closed again. Imports no torch."""
    return tuple(_found(name, host) for name in POWER_METERS)


def _found(name: str, host: Host) -> MeterFound:
    try:
        meter = POWER_METERS[name](Bench(host, dict(os.environ)))
    except Unavailable as reason:
        return MeterFound(name, reason=str(reason))
    try:
        return MeterFound(name, meter.channels)
    finally:
        meter.close()
