"""How much memory devices have, and how much of it they may use."""

from __future__ import annotations

from collections.abc import Mapping

from escala.terms.host import Host
from escala.terms.limits import limit_of


def room_on(device: str, host: Host, memory_gib: Mapping[str, float]) -> int:
    """Bytes that one device may use, such as `cuda:0` or `cpu`: as limited, else all that it has."""
    own = {one.key: one.memory_bytes for one in host.devices}.get(device, host.memory_bytes)
    limit = limit_of(device, memory_gib)
    return own if limit is None else min(own, limit)


def room_of(host: Host, memory_gib: Mapping[str, float]) -> int:
    """Bytes that the least of the host's best devices may use."""
    return min(
        room_on(one, host, memory_gib) for one in [device.key for device in host.of_kind(host.best)] or ["cpu"]
    )
