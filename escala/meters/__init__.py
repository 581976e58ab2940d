"""The table of power meters, which the campaign's parent reads. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from escala.meters.amd import open_amd
from escala.meters.base import Bench, PowerMeter
from escala.meters.estimate import open_estimate
from escala.meters.nvml import open_nvml
from escala.meters.rapl import open_rapl
from escala.meters.user import own
from escala.terms.words import not_in_table

POWER_METERS: dict[str, Callable[[Bench], PowerMeter]] = {
    "nvml": open_nvml,
    "amd": open_amd,
    "rapl": open_rapl,
    "estimate": open_estimate,
}

METER_NAMES = ("memory", *POWER_METERS)
"""What `measure.meters` may name besides `module:factory`; `memory` is read by the seats themselves."""


def power_meter(name: str) -> Callable[[Bench], PowerMeter]:
    """The opener of that name, from the table or `module:factory`. Raises `CFG-VALUE` for a name that is neither."""
    if ":" in name:
        return partial(own, name)
    opener = POWER_METERS.get(name)
    if opener is None:
        raise not_in_table("measure.meters", "power meter", name, POWER_METERS, own=True)
    return opener
