"""What a row is: what must be alike before the times of two campaigns are compared, and what may be under test."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec import Struct

from escala.analyse.execution_words import precision_words
from escala.analyse.group import Group
from escala.terms.experiment import TrainSpec
from escala.terms.host import Host
from escala.terms.record import Record

_DIGEST = 12
_OF_MUST = {"batch", "epochs", "steps", "until", "precision", "compression"}
"""Keys that stand among what must be alike."""
_TOLD = ("name", "ways", "device", "simulate")
DATA = ("data", "rows")
DEVICE = "device"
THREADS = "threads"


class Facets(Struct, frozen=True):
    """One row, taken apart. Every value is text that is not yet safe to show.

    `must`: network, data, device, number format, batch and budget. `may`: strategy, recipe and how steps are run,
    which a comparison may be about. `around`: software and the rest of the machine, which belong to no row.
    """

    must: dict[str, str]
    may: dict[str, str]
    around: dict[str, str]

    @property
    def definition(self) -> tuple[tuple[str, str], ...]:
        """What was asked for, whatever data, device and number of threads it met."""
        left_out = (*DATA, DEVICE, THREADS)
        return tuple((name, value) for name, value in (self.must | self.may).items() if name not in left_out)


def facets_of(group: Group) -> Facets:
    """The facets of the runs of one row."""
    record = next(iter(group.done), group.records[0])
    trial = record.trial
    execution = record.execution or trial.execution
    data = next((one.data for one in group.records if one.data), None)
    must = {
        "network": trial.workload + (f" {_text(trial.options)}" if trial.options else ""),
        DEVICE: _device(record),
        "devices": f"{trial.strategy.ways}" + (" simulated" if trial.strategy.simulate else ""),
        "precision": precision_words(execution),
        "batch": f"{trial.batch:,}",
        "budget": _budget(trial.train),
    }
    if group.digest is not None:
        must["data"] = group.digest[:_DIGEST]
    if data is not None:
        must["rows"] = " + ".join(f"{count:,} {split}" for split, count in sorted(data.rows.items()))
    may = {"strategy": trial.strategy.name, "loop": trial.peer or "escala"}
    # What else a strategy takes.
    sitting = msgspec.structs.asdict(trial.strategy)
    may |= {f"strategy {key}": _text(value) for key, value in sitting.items() if key not in _TOLD}
    if trial.seats:
        may[THREADS] = f"{sum(seat.threads for seat in trial.seats)}"
    for table in (msgspec.structs.asdict(execution), msgspec.structs.asdict(trial.train)):
        may |= {key: _text(value) for key, value in table.items() if key not in {*_OF_MUST, THREADS}}
    return Facets(must, may, _around(record))


def _device(record: Record) -> str:
    host, kind = record.host, record.trial.strategy.device
    machines = f", {host.nodes} machines" if host.nodes > 1 else ""
    if kind == "cpu":
        return f"{host.cpu}, {host.cores} cores{machines}"
    names = dict.fromkeys(device.name for device in host.of_kind(kind))
    return f"{kind} {' and '.join(names) or 'without a device'}{machines}"


def _budget(train: TrainSpec) -> str:
    if train.until is not None:
        return f"until {train.until:.6g} within {train.epochs} epochs"
    return f"{train.steps:,} steps" if train.steps is not None else f"{train.epochs:,} epochs"


def _around(record: Record) -> dict[str, str]:
    host = record.host
    found = {"machine": _machine(host), "system": host.system}
    return found | dict(sorted(host.software.items())) | dict(sorted(host.environment.items()))


def _machine(host: Host) -> str:
    cards = Counter(f"{device.kind} {device.name}" for device in host.devices)
    told = [f"{count} x {name}" for name, count in cards.items()]
    return ", ".join([host.cpu, f"{host.cores} cores", *told])


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, order="deterministic").decode()
