"""What the readings of one record say of its energy: of the parts that it used, of the whole host, above idle.

A sum that lacks a part says so, or there is none: what could not be read is never taken for 0 joules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import TypeGuard

from msgspec import Struct

from escala.analyse.language import marked, say
from escala.terms.energy import ENERGY, IDLE_POWER, INTEGRAL, MEAN_POWER, PEAK_POWER, PHASES
from escala.terms.record import How, Reading, Record

_WEAKEST: tuple[How, ...] = ("estimated", "sampled", "counter")
NOT_MEASURED = marked("not measured")
SMALL = 0.05
"""A way of reading that less than this share of a part's joules were read in does not name the part's."""
_SHARED_MEMORY = "mps"
"""Devices of this kind are a part of the processor's package, whose joules hold theirs."""


class Account(Struct, frozen=True, kw_only=True):
    """The energy of one run; `reason`: why there is none.

    `how` tells of each part in the sum how it was read, by the weakest way of a good share of its joules. `phase_j`
    are joules of these parts by phase, `idle_j` those of boards that idled (`idle_parts`), `above_idle_j` what the
    parts in the sum took above their idle power. `mean_w` and `peak_w` are watts by part, idle boards among them.
    `counter_over_integral` is of the part where the two agree least.
    """

    reason: str | None = None
    how: dict[str, How] = {}
    phase_j: dict[str, float] = {}
    idle_j: float | None = None
    above_idle_j: float | None = None
    idle_parts: tuple[str, ...] = ()
    mean_w: dict[str, float] = {}
    peak_w: dict[str, float] = {}
    counter_over_integral: float | None = None

    @property
    def energy_j(self) -> float | None:
        """Joules of the parts in the sum over all phases."""
        return sum(self.phase_j.values()) if self.reason is None else None

    @property
    def host_j(self) -> float | None:
        """The same with the boards that idled; None where one of them could not be read."""
        return None if self.energy_j is None or self.idle_j is None else self.energy_j + self.idle_j


class _Part(Struct, frozen=True):
    used: bool
    phase_j: dict[str, float]
    how: How
    reason: str | None


def account(record: Record) -> Account:
    """The energy of a run that was done.

    The devices of the trial's seats must all have been read; of a trial on the processor, all that belongs to that.
    Where devices did the work, joules of the processor may be missing: the sum is then that of the parts in `how`.
    """
    seconds = seconds_of(record)
    parts = {where: _part(where, record.readings, seconds) for where in _wheres(record.readings)}
    mean_w, peak_w = _mean_power(record.readings, seconds), _values(record.readings, PEAK_POWER)
    idle_parts = tuple(where for where, part in parts.items() if not part.used)
    devices = _devices(record)
    used = {where: part for where, part in parts.items() if part.used}
    known = {where: part for where, part in used.items() if part.reason is None}
    complete = devices <= set(known) if devices else len(known) == len(used) > 0
    if not complete or not seconds:
        reason = _why_none(record.readings, used, devices)
        return Account(reason=reason, idle_parts=idle_parts, mean_w=mean_w, peak_w=peak_w)
    idle_w = _values(record.readings, IDLE_POWER)
    return Account(
        how={where: part.how for where, part in known.items()},
        phase_j={phase: sum(part.phase_j[phase] for part in known.values()) for phase in seconds},
        idle_j=_of_idle_boards(record, parts),
        above_idle_j=_above_idle(known, idle_w, sum(seconds.values())),
        idle_parts=idle_parts,
        mean_w=mean_w,
        peak_w=peak_w,
        counter_over_integral=_agreement(record.readings, known),
    )


def not_measured(reason: str) -> str:
    """The reason as it stands in a row."""
    return f"{say(NOT_MEASURED)}: {reason}"


def only_why(reason: str) -> str:
    """The reason alone, for where it is plain that nothing was measured."""
    return reason.removeprefix(not_measured(""))


def seconds_of(record: Record) -> dict[str, float]:
    """Seconds by phase, of the phases that the run had."""
    if record.phases is None:
        return {}
    times = (record.phases.train_s, record.phases.validation_s, record.phases.test_s)
    return {phase: time for phase, time in zip(PHASES, times, strict=True) if time is not None}


def _wheres(readings: Iterable[Reading]) -> tuple[str, ...]:
    """Parts of the machine, each once; a meter that could not be opened at all is none."""
    found = (reading.where for reading in readings if reading.what == ENERGY and reading.used is not None)
    return tuple(dict.fromkeys(found))


def _part(where: str, readings: Sequence[Reading], seconds: Mapping[str, float]) -> _Part:
    own = [reading for reading in readings if reading.what == ENERGY and reading.where == where]
    used = any(reading.used for reading in own)
    by_phase: dict[str | None, Reading] = {}
    for reading in own:
        # Each part is counted once, however many tell of it.
        by_phase.setdefault(reading.phase, reading)
    if None in by_phase:
        return _Part(used, {}, "counter", by_phase[None].reason or say("it was not read by phase"))
    phase_j: dict[str, float] = {}
    for phase in seconds:
        if phase not in by_phase:
            return _Part(used, {}, "counter", say("there is no reading of the phase {phase}", phase=say(phase)))
        reading = by_phase[phase]
        if reading.value is None:
            return _Part(used, {}, "counter", reading.reason or say("no reason was given"))
        if not _sound(reading.value):
            return _Part(used, {}, "counter", _told(reading.value, phase))
        phase_j[phase] = reading.value
    # What is switched on takes something: no joules at all are no reading.
    if sum(phase_j.values()) <= 0:
        return _Part(used, {}, "counter", say("it told 0 J"))
    return _Part(used, phase_j, _way([by_phase[phase] for phase in seconds]), None)


def _told(joules: float, phase: str) -> str:
    return say("it told {joules} J for the phase {phase}", joules=f"{joules:g}", phase=say(phase))


def _way(readings: Sequence[Reading]) -> How:
    """The weakest way in which a good share of a part's joules were read: a short phase is often read by another."""
    whole = sum(reading.value or 0.0 for reading in readings)
    shares = {how: sum(one.value or 0.0 for one in readings if one.how == how) / whole for how in _WEAKEST}
    return next(how for how in _WEAKEST if shares[how] >= SMALL)


def _devices(record: Record) -> set[str]:
    return {device for seat in record.trial.seats for device in seat.devices if device != "cpu"}


def _why_none(readings: Sequence[Reading], used: Mapping[str, _Part], devices: set[str]) -> str:
    """`not measured: nvml: no NVIDIA driver on this machine; rapl: permission denied on ...`."""
    told = [f"{where}: {part.reason}" for where, part in used.items() if part.reason is not None]
    told += [
        f"{reading.where}: {reading.reason}"
        for reading in readings
        if reading.what == ENERGY and reading.used is None and reading.value is None
    ]
    if not told:
        unread = ", ".join(sorted(devices - set(used)))
        told = (
            [say("no meter read {parts}", parts=unread)] if used and unread else [say("no power meter was asked for")]
        )
    return not_measured("; ".join(dict.fromkeys(told)))


def _of_idle_boards(record: Record, parts: Mapping[str, _Part]) -> float | None:
    """Joules of the boards that the trial left idle; None where one is not known."""
    idle = [part for part in parts.values() if not part.used]
    boards = {device.key for device in record.host.devices if device.kind != _SHARED_MEMORY}
    if not boards <= set(parts) or any(part.reason is not None for part in idle):
        return None
    return sum(sum(part.phase_j.values()) for part in idle)


def _above_idle(known: Mapping[str, _Part], idle_w: Mapping[str, float], seconds: float) -> float | None:
    if not set(known) <= set(idle_w):
        return None
    return sum(sum(part.phase_j.values()) - idle_w[where] * seconds for where, part in known.items())


def _agreement(readings: Sequence[Reading], known: Iterable[str]) -> float | None:
    """Joules of the counter over the integral of power, of the part where that is farthest from 1."""
    ratios = [ratio for where in known if (ratio := _counter_over_integral(where, readings)) is not None]
    return max(ratios, key=lambda ratio: abs(ratio - 1), default=None)


def _counter_over_integral(where: str, readings: Sequence[Reading]) -> float | None:
    counter = _by_phase(where, [one for one in readings if one.what == ENERGY and one.how == "counter"])
    integral = _by_phase(where, [one for one in readings if one.what == INTEGRAL])
    both = [phase for phase in counter if phase in integral]
    below = sum(integral[phase] for phase in both)
    return sum(counter[phase] for phase in both) / below if below > 0 else None


def _by_phase(where: str, readings: Iterable[Reading]) -> dict[str | None, float]:
    return {one.phase: one.value for one in readings if one.where == where and _sound(one.value)}


def _mean_power(readings: Sequence[Reading], seconds: Mapping[str, float]) -> dict[str, float]:
    """Watts by part over all phases together."""
    found: dict[str, float] = {}
    powers = [reading for reading in readings if reading.what == MEAN_POWER]
    for where in dict.fromkeys(reading.where for reading in powers):
        by_phase = _by_phase(where, powers)
        whole = sum(seconds.values())
        if whole > 0 and set(seconds) <= set(by_phase):
            found[where] = sum(by_phase[phase] * length for phase, length in seconds.items()) / whole
    return found


def _values(readings: Iterable[Reading], what: str) -> dict[str, float]:
    return {one.where: one.value for one in readings if one.what == what and _sound(one.value)}


def _sound(value: float | None) -> TypeGuard[float]:
    return value is not None and isfinite(value) and value >= 0
