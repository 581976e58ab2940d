"""A report as CSV: one line a row, raw values, safe to open in a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from math import inf, isfinite
from typing import Any

from escala.analyse.annex import NOTHING, Annex
from escala.analyse.epochs import EpochRow
from escala.analyse.plain import plain
from escala.analyse.row import Interval, Summary
from escala.analyse.verdict import Verdict

# A spreadsheet runs what begins like this; the wide forms count as the narrow ones in some locales.
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
# A semicolon or a tab would part the cell where a locale parts by them.
_QUOTED = re.compile(r"[\",;\t\r\n]")

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


def write(summaries: Sequence[Summary], verdict: Verdict, annex: Annex = NOTHING) -> str:
    """One line a summary, in the fields' order, with a column for each swept key, further score, and part or phase of
    which there is energy.

    Figures are not rounded. Where the annex goes epoch by epoch there is one line an epoch instead. Published figures
    stand in the other formats: they are of several kinds, which no column could hold.
    """
    del verdict  # It is prose; the rows carry everything it was drawn from.
    rows: Sequence[_Line] = annex.epochs or summaries
    keys = list(dict.fromkeys(key for row in rows for key in row.point))
    names = {
        field: list(dict.fromkeys(name for row in summaries for name in getattr(row, field))) for field in BY_NAME
    }
    lines = [_header(EpochRow if annex.epochs else Summary, keys, names), *(_row(row, keys, names) for row in rows)]
    return "".join(",".join(_quoted(cell) for cell in line) + "\n" for line in lines)


def _header(kind: type[_Line], keys: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    found: list[str] = []
    for name in kind.__struct_fields__:
        if name == "point":
            found += [_text(f"point.{key}") for key in keys]
        elif name in names:
            found += [_text(f"{BY_NAME[name]}.{one}{end}") for one in names[name] for end in ("", "_low", "_high")]
        else:
            found += [name, f"{name}_low", f"{name}_high"] if name in _intervals(kind) else [name]
    return found


def _row(row: _Line, keys: Sequence[str], names: Mapping[str, Sequence[str]]) -> list[str]:
    found: list[str] = []
    for name in row.__struct_fields__:
        value = getattr(row, name)
        if name == "point":
            found += [_cell(row.point.get(key)) for key in keys]
        elif name in names:
            found += [cell for one in names[name] for cell in _three(value.get(one))]
        elif name in _intervals(type(row)):
            found += _three(value)
        else:
            found.append(_cell(value))
    return found


def _intervals(kind: type[_Line]) -> tuple[str, ...]:
    return INTERVALS if kind is Summary else EPOCH_INTERVALS


def _three(found: Interval | None) -> list[str]:
    return [_end(found.median), _end(found.low), _end(found.high)] if found else ["", "", ""]


def _end(value: float) -> str:
    # What never happened is no figure that is missing.
    return "inf" if value == inf else _cell(value)


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and not isfinite(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _text("; ".join(_parts(value)))


def _parts(value: Any) -> Iterator[str]:
    """A cell holds one value, or several set apart by semicolons; a dictionary as `key: value`."""
    if isinstance(value, dict):
        yield from (f"{key}: {item}" for key, item in value.items())
    elif isinstance(value, list | tuple):
        yield from (str(item) for item in value)
    else:
        yield str(value)


def _text(value: str) -> str:
    clean = plain(value)
    return f"'{clean}" if clean.startswith(_FORMULA) and not _NUMBER.fullmatch(clean) else clean


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell
