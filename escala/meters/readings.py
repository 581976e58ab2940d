"""Samples of a trial and the windows of its phases into the readings of its record."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from escala.meters.base import Channel, Sample
from escala.meters.integrate import Floats, Windows, around, counted, integrated, mean_in, samples_in
from escala.meters.sampler import Samples
from escala.terms import energy
from escala.terms.doubts import Doubt
from escala.terms.errors import Unavailable
from escala.terms.record import How, Reading

SHORT_UPDATES = 20
"""Of fewer renewals of what is read than this, energy is known to no better than 5 %."""
_MUCH_LOAD = 0.1
"""Of the processor's busy time; the system's own housekeeping is below it."""


@dataclass(frozen=True)
class Told:
    """Readings of one trial, and the doubts that its energy raises."""

    readings: tuple[Reading, ...]
    doubts: tuple[Doubt, ...]


def told(
    samples: Samples,
    windows: Mapping[str, Windows],
    devices: Collection[str],
    own: Collection[int] = (),
    *,
    other_load: float | None = None,
) -> Told:
    """What every channel read over the trial's `windows`, by phase.

    `devices` are those that the trial's seats ran on, `own` the numbers of the processes that belonged to it,
    `other_load` the share of the processor's busy time that was not the trial's.
    """
    readings, doubts = list[Reading](), set[Doubt]()
    seconds = np.array(samples.seconds)
    length = sum(end - begin for parts in windows.values() for begin, end in parts)
    spacing = float(np.median(np.diff(seconds)))
    for place, channel in _worth_telling(samples.channels):
        used = channel.part != "device" or channel.where in devices
        column = [row[place] for row in samples.rows]
        found = _of_channel(channel, seconds, column, windows, used)
        readings += found
        if used:
            doubts |= _doubts(channel, found, length, spacing)
        if used and channel.part == "device" and (others := _others(column, own)):
            readings.append(Reading(energy.OTHERS, channel.where, float(others), "", "sampled", used=used))
            doubts.add("shared device")
    if other_load is not None and any(channel.part == "cpu" for channel in samples.channels):
        readings.append(Reading(energy.OTHER_LOAD, "cpu", other_load, "", "counter", used=True))
        if other_load > _MUCH_LOAD:
            doubts.add("shared device")
    return Told(tuple(readings), tuple(sorted(doubts)))


def idle(samples: Samples) -> tuple[Reading, ...]:
    """The mean power of every channel over all its samples, with nothing running."""
    seconds = np.array(samples.seconds)
    whole = [(float(seconds[0]), float(seconds[-1]))]
    found = []
    for place, channel in _worth_telling(samples.channels):
        column = [row[place] for row in samples.rows]
        how = channel.joules or channel.watts or "counter"
        if channel.reason is not None:
            found.append(Reading(energy.IDLE_POWER, channel.where, None, "W", how, channel.reason))
            continue
        try:
            joules, how, _ = _joules(channel, seconds, column, whole)
        except Unavailable as reason:
            found.append(Reading(energy.IDLE_POWER, channel.where, None, "W", how, str(reason)))
            continue
        found.append(Reading(energy.IDLE_POWER, channel.where, joules / (whole[0][1] - whole[0][0]), "W", how))
    return tuple(found)


def _worth_telling(channels: Sequence[Channel]) -> Iterator[tuple[int, Channel]]:
    """Channels with their places, without those that cannot read what another one reads."""
    read = [channel for channel in channels if channel.reason is None]
    names, processor = {channel.where for channel in read}, any(channel.part == "cpu" for channel in read)
    for place, channel in enumerate(channels):
        if channel.reason is None or not (channel.where in names or (processor and channel.part == "cpu")):
            yield place, channel


def _of_channel(
    channel: Channel, seconds: Floats, column: Sequence[Sample], windows: Mapping[str, Windows], used: bool
) -> list[Reading]:
    where = channel.where
    how = channel.joules or channel.watts or "counter"
    if channel.reason is not None:
        return [Reading(energy.ENERGY, where, None, "J", how, channel.reason, used=used)]
    found = list[Reading]()
    for phase, parts in windows.items():
        try:
            joules, by, note = _joules(channel, seconds, column, parts)
        except Unavailable as reason:
            found.append(Reading(energy.ENERGY, where, None, "J", how, str(reason), phase, used))
            continue
        found.append(Reading(energy.ENERGY, where, joules, "J", by, note, phase, used))
        if by == "counter" and channel.watts is not None:
            found += _integral(channel, seconds, column, parts, phase, used)
        length = sum(end - begin for begin, end in parts)
        found.append(Reading(energy.MEAN_POWER, where, joules / length, "W", by, None, phase, used))
    if channel.limit_w is not None:
        found.append(Reading(energy.POWER_LIMIT, where, channel.limit_w, "W", "counter", used=used))
    return [*found, *_further(where, seconds, column, [one for parts in windows.values() for one in parts], used)]


def _joules(
    channel: Channel, seconds: Floats, column: Sequence[Sample], windows: Windows
) -> tuple[float, How, str | None]:
    """Joules in the windows, how they are known, and what had to be given up for them. Raises `Unavailable`."""
    length = sum(end - begin for begin, end in windows)
    if length <= 0:
        raise Unavailable("the phase took no time")
    _check_answers(seconds, column, windows)
    why_not = "it has no counter"
    if channel.joules is not None:
        try:
            joules = counted(*_known(seconds, [sample.joules for sample in column]), windows, channel.update_s)
            if length < channel.update_s:
                raise Unavailable(
                    f"the phase took {length * 1000:.0f} ms, its counter is renewed every {channel.update_s:g} s"
                )
        except Unavailable as reason:
            why_not = str(reason)
        else:
            return joules, channel.joules, _short(length / len(windows), channel.update_s)
    if channel.watts is None:
        raise Unavailable(why_not)
    joules = integrated(*_known(seconds, [sample.watts for sample in column]), windows)
    return joules, channel.watts, None if channel.joules is None else f"{why_not}: power was integrated"


def _short(window: float, update_s: float) -> str | None:
    """What is said of a phase whose windows, this long on average, end between two renewals of the counter."""
    if window >= SHORT_UPDATES * update_s:
        return None
    return f"windows of {window:.2g} s, counter renewed every {update_s:g} s"


def _integral(
    channel: Channel, seconds: Floats, column: Sequence[Sample], parts: Windows, phase: str, used: bool
) -> Iterator[Reading]:
    assert channel.watts is not None
    try:
        joules = integrated(*_known(seconds, [sample.watts for sample in column]), parts)
    except Unavailable as reason:
        yield Reading(energy.INTEGRAL, channel.where, None, "J", channel.watts, str(reason), phase, used)
    else:
        yield Reading(energy.INTEGRAL, channel.where, joules, "J", channel.watts, None, phase, used)


def _check_answers(seconds: Floats, column: Sequence[Sample], windows: Windows) -> None:
    """Raise `Unavailable` where the part did not answer at some time of the windows."""
    inside = around(seconds, windows)
    for second, sample in zip(seconds[inside], column[inside], strict=True):
        if sample.reason is not None:
            raise Unavailable(f"after {second - seconds[0]:.1f} s: {sample.reason}")


def _further(
    where: str, seconds: Floats, column: Sequence[Sample], windows: Windows, used: bool
) -> Iterator[Reading]:
    """What else the samples tell, over all phases."""
    inside = [sample for sample, is_in in zip(column, samples_in(seconds, windows), strict=True) if is_in]
    watts = [sample.watts for sample in inside if sample.watts is not None]
    if watts:
        yield Reading(energy.PEAK_POWER, where, max(watts), "W", "sampled", used=used)
    for what, unit, values in (
        (energy.UTILISATION, "", [sample.utilisation for sample in column]),
        (energy.CLOCK, "MHz", [sample.clock_mhz for sample in column]),
    ):
        moments, known = _known(seconds, values)
        if len(known) and (mean := mean_in(moments, known, windows)) is not None:
            yield Reading(what, where, mean, unit, "sampled", used=used)
    degrees = [sample.temperature_c for sample in inside if sample.temperature_c is not None]
    if degrees:
        yield Reading(energy.TEMPERATURE, where, max(degrees), "degrees C", "sampled", used=used)
    held = [sample.throttled for sample in inside if sample.throttled is not None]
    if held:
        yield Reading(energy.THROTTLED, where, sum(held) / len(held), "", "sampled", used=used)


def _known(seconds: Floats, values: Sequence[float | None]) -> tuple[Floats, Floats]:
    """The moments at which there was a value, and the values."""
    found = [value is not None for value in values]
    return seconds[found], np.array([value for value in values if value is not None], dtype=np.float64)


def _doubts(channel: Channel, found: Sequence[Reading], length: float, spacing: float) -> set[Doubt]:
    """`length` of all phases together, `spacing` of the samples, seconds."""
    doubts = set[Doubt]()
    read = [reading for reading in found if reading.what == energy.ENERGY and reading.value is not None]
    if any(reading.how == "estimated" for reading in read):
        doubts.add("energy estimated")
    if read and length < SHORT_UPDATES * max(channel.update_s, 0.0 if read[0].how == "counter" else spacing):
        doubts.add("short energy window")
    if any(reading.what == energy.THROTTLED and reading.value for reading in found):
        doubts.add("throttled")
    pair = [_sum(found, what) for what in (energy.ENERGY, energy.INTEGRAL)]
    if pair[0] and pair[1] and abs(pair[0] / pair[1] - 1) > energy.AGREEMENT and "short energy window" not in doubts:
        doubts.add("energy disagrees")
    return doubts


def _sum(found: Sequence[Reading], what: str) -> float | None:
    values = [reading.value for reading in found if reading.what == what]
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _others(column: Sequence[Sample], own: Collection[int]) -> int:
    """The most processes at one time that were not the trial's own."""
    return max((len(set(sample.processes) - set(own)) for sample in column), default=0)
