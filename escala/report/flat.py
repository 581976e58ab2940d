"""Rows with intervals and tables in them as one flat table: a name for each column, a plain value in each cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan
from typing import Any

from escala.analyse.annex import Annex
from escala.analyse.epochs import EpochRow
from escala.analyse.row import Interval, Summary

Value = str | int | float | bool | None

INTERVALS = (
    "setup_s",
    "epoch_s",
    "train_s",
    "validation_s",
    "test_s",
    "total_s",
    "samples_per_second",
    "score",
    "speedup_total",
    "speedup_train",
    "efficiency_total",
    "efficiency_train",
    "to_score_s",
    "to_score_epochs",
    "speedup_to_score",
    "score_lost",
    "energy_j",
    "energy_host_j",
    "energy_above_idle_j",
    "idle_share",
    "joules_per_sample",
    "samples_per_joule",
    "edp",
    "edp_host",
    "energy_ratio",
    "edp_ratio",
    "edp_host_ratio",
    "to_score_energy_j",
    "to_score_edp",
    "co2_g",
    "counter_over_integral",
)
"""Fields with three columns each: the median under the field's name, then `_low` and `_high`."""
BY_NAME = {
    "other_scores": "score",
    "energy_phase_j": "energy_phase_j",
    "mean_w": "mean_w",
    "peak_w": "peak_w",
}
"""Fields with three columns for each name in them, and what the columns' names begin with."""
EPOCH_INTERVALS = ("train_s", "validation_s", "loss", "score")
"""The same of an epoch's line."""


_Line = Summary | EpochRow


def flat(summaries: Sequence[Summary], annex: Annex) -> tuple[list[str], list[list[Value]]]:
    """The names of the columns, and a row for each summary, or for each epoch where the annex goes epoch by epoch.

    Figures are not rounded; infinite is never. Names and texts are as they were recorded.
    """
    rows: Sequence[_Line] = annex.epochs or summaries
    keys = list(dict.fromkeys(key for row in rows for key in row.point))
    names = {
        field: list(dict.fromkeys(name for row in summaries for name in getattr(row, field))) for field in BY_NAME
    }
    header = _header(EpochRow if annex.epochs else Summary, keys, names)
    return header, [_row(row, keys, names) for row in rows]


def _header(kind: type[_Line], keys: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    found: list[str] = []
    for name in kind.__struct_fields__:
        if name == "point":
            found += [f"point.{key}" for key in keys]
        elif name in names:
            found += [f"{BY_NAME[name]}.{one}{end}" for one in names[name] for end in ("", "_low", "_high")]
        else:
            found += [name, f"{name}_low", f"{name}_high"] if name in _intervals(kind) else [name]
    return found


def _row(row: _Line, keys: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[Value]:
    found: list[Value] = []
    for name in row.__struct_fields__:
        value = getattr(row, name)
        if name == "point":
            found += [_cell(row.point.get(key)) for key in keys]
        elif name in names:
            found += [cell for one in names[name] for cell in three(value.get(one))]
        elif name in _intervals(type(row)):
            found += three(value)
        else:
            found.append(_cell(value))
    return found


def _intervals(kind: type[_Line]) -> tuple[str, ...]:
    return INTERVALS if kind is Summary else EPOCH_INTERVALS


def three(found: Interval | None) -> list[Value]:
    """Median, low and high end, or three empty cells."""
    return [found.median, found.low, found.high] if found else [None, None, None]


def _cell(value: Any) -> Value:
    if value is None or (isinstance(value, float) and isnan(value)):
        return None
    return value if isinstance(value, str | int | float) else "; ".join(_parts(value))


def _parts(value: Any) -> Iterator[str]:
    """A cell holds one value, or several set apart by semicolons; a dictionary as `key: value`."""
    if isinstance(value, dict):
        yield from (f"{key}: {item}" for key, item in value.items())
    elif isinstance(value, list | tuple):
        yield from (str(item) for item in value)
    else:
        yield str(value)
