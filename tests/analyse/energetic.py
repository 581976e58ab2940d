"""Records with readings of energy, made by hand: constant watts, so that joules are watts times seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import recorded as made
from msgspec.structs import replace

from escala.terms.energy import ENERGY, IDLE_POWER, INTEGRAL, MEAN_POWER, PEAK_POWER
from escala.terms.host import Device, Host
from escala.terms.record import How, Reading, Record
from escala.terms.trial import Role

PAIR = Host(
    cpu="Xeon Test",
    cores=8,
    memory_bytes=64 * 2**30,
    system="Linux 6.1",
    devices=tuple(Device("cuda", index, "Test GPU", 80 * 2**30) for index in range(2)),
    software={"torch": "2.13.0"},
)
ALONE = made.HOST
NO_NVML = Reading(ENERGY, "nvml", None, "J", "counter", "no NVIDIA driver on this machine")
NO_RAPL = Reading(ENERGY, "rapl", None, "J", "counter", "permission denied on energy_uj")


def metered(
    record: Record,
    watts: Mapping[str, float | str],
    idle_w: Mapping[str, float] | None = None,
    *,
    how: Mapping[str, How] | How = "counter",
    integral: Mapping[str, float] | None = None,
    more: Sequence[Reading] = (),
    role: Role = "both",
) -> Record:
    """The record with readings of constant `watts` by part; words in place of watts are why a part was not read.

    `integral` gives, by part, the joules of integrated power over those of the counter.
    """
    assert record.phases is not None
    times = {"train": record.phases.train_s, "validation": record.phases.validation_s, "test": record.phases.test_s}
    mine = {device for seat in record.trial.seats for device in seat.devices}
    found: list[Reading] = []
    for where, power in watts.items():
        used = where in mine or where.startswith(("package", "dram", "cpu"))
        way = how if isinstance(how, str) else how[where]
        if isinstance(power, str):
            found.append(Reading(ENERGY, where, None, "J", way, power, used=used))
            continue
        for phase, seconds in times.items():
            if seconds is None:
                continue
            joules = power * seconds
            found.append(Reading(ENERGY, where, joules, "J", way, None, phase, used))
            found.append(Reading(MEAN_POWER, where, power, "W", way, None, phase, used))
            if integral and where in integral:
                joules *= integral[where]
                found.append(Reading(INTEGRAL, where, joules, "J", "sampled", None, phase, used))
        found.append(Reading(PEAK_POWER, where, power + 10, "W", "sampled", used=used))
    found += [Reading(IDLE_POWER, where, power, "W", "counter") for where, power in (idle_w or {}).items()]
    return replace(record, readings=(*found, *more), trial=replace(record.trial, role=role))


def runs(
    label: str, times: Sequence[float], watts: Mapping[str, float | str], *, first: int = 0, **more: Any
) -> list[Record]:
    """A metered record for each training time; the last 0.3 s are validation and test."""
    kept = {name: more.pop(name) for name in ("how", "idle_w", "integral", "role") if name in more}
    extra = more.pop("readings", ())
    return [
        metered(made.make(label, first + number, train_s=time, **more), watts, more=extra, **kept)
        for number, time in enumerate(times)
    ]


def pair_campaign(*, host: Host = PAIR) -> list[Record]:
    """Two boards: one used at 100 W and one idle at 20 W for 2.3 s, against two at 110 W for 1.15 s."""
    return [
        *runs("single", [2.0] * 5, {"cuda:0": 100.0, "cuda:1": 20.0}, idle_w=IDLE, device="cuda", host=host),
        *runs(
            "ddp x2", [0.85] * 5, {"cuda:0": 110.0, "cuda:1": 110.0}, idle_w=IDLE, device="cuda", host=host, ways=2
        ),
    ]


IDLE = {"cuda:0": 20.0, "cuda:1": 20.0}
