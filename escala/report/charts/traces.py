"""Power traces of a campaign's folder, as charts take them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from escala.analyse.compare import point_text
from escala.report.charts.matter import Line, Shade, Trace
from escala.store.trace import read_trace
from escala.terms.record import Record

_WATTS = "/watts"


def traces_of(folder: Path, records: Iterable[Record]) -> tuple[Trace, ...]:
    """The trace of the first run of each row that was done and has one in the folder.

    Raises RES-TRACE for one that is damaged.
    """
    first = dict[tuple[str, str], Record]()
    for record in records:
        if record.outcome == "done" and record.power_trace is not None and (folder / record.power_trace).exists():
            first.setdefault((point_text(record.trial.point), record.trial.label), record)
    return tuple(_trace(folder, record, point, label) for (point, label), record in first.items())


def missing_traces(folder: Path, records: Iterable[Record]) -> int:
    """How many traces records speak of that are not in the folder, as where records alone were copied."""
    named = [record.power_trace for record in records if record.power_trace is not None]
    return sum(not (folder / name).exists() for name in named)


def _trace(folder: Path, record: Record, point: str, label: str) -> Trace:
    about, arrays = read_trace(folder / (record.power_trace or ""))
    seconds = arrays["seconds"]
    lines = []
    for name, watts in arrays.items():
        if name.endswith(_WATTS):
            told = np.flatnonzero(~np.isnan(watts))
            lines.append(Line(name.removesuffix(_WATTS), tuple(seconds[told].tolist()), tuple(watts[told].tolist())))
    shades = tuple(Shade(window.phase, window.begin, window.end) for window in about.windows)
    return Trace(label, point, tuple(sorted(lines, key=lambda line: line.where)), shades)
