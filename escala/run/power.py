"""Energy of trials, read by the campaign's parent: it is idle meanwhile, and seats are never disturbed."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import psutil

from escala.meters import POWER_METERS, power_meter
from escala.meters.base import Bench, PowerMeter
from escala.meters.sampler import Sampler, Samples
from escala.run.assignment import SeatResult, Span
from escala.run.load import ProcessorTime, other_load, processor_time
from escala.store.files import disk_errors, names_in
from escala.terms.energy import ENERGY, IDLE_POWER, used_joules
from escala.terms.errors import Unavailable
from escala.terms.events import Note, Watcher
from escala.terms.experiment import MeasureSpec
from escala.terms.host import Host
from escala.terms.record import Reading, Record
from escala.terms.trial import Trial

if TYPE_CHECKING:
    from escala.meters.readings import Told

TRACES = "traces"
"""Folder of a campaign in which the power traces lie."""


@dataclass(frozen=True)
class Power:
    """The meters of a campaign, open. `missing` tells of those that read nothing, `idle` of the machine at rest."""

    meters: tuple[PowerMeter, ...]
    missing: tuple[Reading, ...]
    sample_s: float
    idle: tuple[Reading, ...] = ()


@dataclass
class Sampling:
    """One trial's samples; `own` gathers the numbers of its processes."""

    sampler: Sampler
    own: set[int] = field(default_factory=set)
    began: ProcessorTime = field(default_factory=processor_time)
    other_load: float | None = None

    def edge(self) -> None:
        """Read at once: a phase begins or ends."""
        self.sampler.read()
        self.own |= {child.pid for child in psutil.Process().children(recursive=True)}


@contextmanager
def metered(measure: MeasureSpec, host: Host, watch: Watcher, *, rest: bool = True) -> Iterator[Power]:
    """All power meters of `measure`, open until the end; the idle machine's power was read where `rest` is set."""
    with ExitStack() as stack:
        meters, missing = _opened(measure, host, stack)
        power = Power(tuple(meters), tuple(missing), measure.sample_s)
        if meters and rest and measure.idle_s > 0:
            watch(Note(f"power of the idle machine: measured for {measure.idle_s:g} s"))
            power = Power(power.meters, power.missing, power.sample_s, _at_rest(meters, measure))
        yield power


@contextmanager
def sampling(power: Power, trial: Trial) -> Iterator[Sampling | None]:
    """Samples while the trial runs; None where nothing can be read, or the trial only times."""
    if not power.meters or not trial.metered:
        yield None
        return
    under_way = Sampling(Sampler(power.meters, power.sample_s))
    under_way.sampler.start()
    try:
        yield under_way
    finally:
        under_way.sampler.end()
        # The seats are gone by now, so that their time is known.
        under_way.other_load = other_load(under_way.began, processor_time())


def at_edges(under_way: Sampling | None) -> Callable[[], None]:
    """What is to be done where a phase begins or ends."""
    return under_way.edge if under_way is not None else lambda: None


def with_energy(
    record: Record, power: Power, under_way: Sampling | None, results: Sequence[SeatResult], folder: Path
) -> Record:
    """The record with what the meters read in its phases, and its trace written into the campaign's `folder`.

    Raises ENV-DISK.
    """
    if not record.trial.metered:
        return record
    if under_way is None or not results:
        return _with(record, power.missing)
    # Numpy, which only campaigns with a meter need.
    from escala.meters.readings import told

    samples = under_way.sampler.samples()
    spans = together(results)
    windows = {phase: [(span.begin, span.end) for span in spans if span.phase == phase] for phase in _phases(spans)}
    devices = {device for seat in record.trial.seats for device in seat.devices}
    found = told(samples, windows, devices, _own_on_devices(samples, under_way.own), other_load=under_way.other_load)
    trace = _write(folder, record, samples, spans, power.idle)
    return _with(record, (*found.readings, *power.idle, *power.missing), found, trace)


def without_energy(record: Record, reason: str) -> Record:
    """The record of a trial whose energy could not be read, and why."""
    return _with(record, (Reading(ENERGY, "all meters", None, "J", "counter", reason),))


def together(results: Sequence[SeatResult]) -> tuple[Span, ...]:
    """Each span from the first seat that began it to the last that ended it."""
    columns = zip(*(result.spans for result in results), strict=True)
    return tuple(
        Span(parts[0].phase, parts[0].epoch, min(one.begin for one in parts), max(one.end for one in parts))
        for parts in columns
    )


def _opened(measure: MeasureSpec, host: Host, stack: ExitStack) -> tuple[list[PowerMeter], list[Reading]]:
    meters, missing = list[PowerMeter](), list[Reading]()
    covered = set[str]()
    for name in measure.meters:
        if name not in POWER_METERS and ":" not in name:
            continue
        bench = Bench(host, dict(os.environ), measure.tdp_w, frozenset(covered))
        try:
            meter = power_meter(name)(bench)
        except Unavailable as reason:
            missing.append(Reading(ENERGY, name, None, "J", "counter", str(reason)))
            continue
        stack.callback(meter.close)
        meters.append(meter)
        for channel in meter.channels:
            if channel.reason is None:
                covered |= {channel.where, "cpu"} if channel.part == "cpu" else {channel.where}
    return meters, missing


def _at_rest(meters: Sequence[PowerMeter], measure: MeasureSpec) -> tuple[Reading, ...]:
    from escala.meters.readings import idle

    sampler = Sampler(meters, min(measure.sample_s, measure.idle_s / 4))
    sampler.start()
    try:
        time.sleep(measure.idle_s)
    finally:
        sampler.end()
    return idle(sampler.samples())


def _phases(spans: Sequence[Span]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(span.phase for span in spans))


def _own_on_devices(samples: Samples, own: set[int]) -> set[int]:
    """The trial's own processes by the numbers that the driver gives them.

    In a container the driver's numbers are those of the machine outside. Where none of ours is among them, those that
    were not there when the trial began are taken for ours.
    """
    seen = {pid for row in samples.rows for sample in row for pid in sample.processes}
    if own & seen:
        return own
    return seen - {pid for sample in samples.rows[0] for pid in sample.processes}


def _write(folder: Path, record: Record, samples: Samples, spans: Sequence[Span], at_rest: Sequence[Reading]) -> str:
    from escala.run.trace import arrays_of
    from escala.store.trace import About, Window, write_trace

    start = samples.seconds[0]
    windows = tuple(Window(span.phase, span.epoch, span.begin - start, span.end - start) for span in spans)
    idle_w = {one.where: one.value for one in at_rest if one.what == IDLE_POWER and one.value is not None}
    name = f"{TRACES}/{record.id}.safetensors"
    with disk_errors(folder / TRACES):
        names_in(folder / TRACES)
    write_trace(folder / name, About(record.id, windows, idle_w), arrays_of(samples))
    return name


def _with(record: Record, readings: Sequence[Reading], found: Told | None = None, trace: str | None = None) -> Record:
    doubts = tuple(dict.fromkeys((*record.doubts, *(found.doubts if found else ()))))
    record = msgspec.structs.replace(record, readings=(*record.readings, *readings), doubts=doubts, power_trace=trace)
    if record.to_score is None:
        return record
    joules, reason = used_joules(record.readings, record.trial, ("train", "validation"))
    return msgspec.structs.replace(
        record, to_score=msgspec.structs.replace(record.to_score, energy_j=joules, energy_reason=reason)
    )
