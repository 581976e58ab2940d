"""Limits of memory by device, as an experiment gives them."""

from __future__ import annotations

from collections.abc import Mapping


def limit_of(device: str, memory_gib: Mapping[str, float]) -> int | None:
    """Bytes that a device such as `cuda:0` may use: its own limit, or that of its kind; None: there is none."""
    found = memory_gib.get(device, memory_gib.get(device.partition(":")[0]))
    return None if found is None else int(found * 2**30)
