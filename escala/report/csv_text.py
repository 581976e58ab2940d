"""A report as CSV: one line a row, raw values, safe to open in a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

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
)
"""Fields with three columns each: the median under the field's name, then `_low` and `_high`."""


def write(summaries: Sequence[Summary], verdict: Verdict) -> str:
    """One line a summary, in the fields' order, with a column for each swept key; figures are not rounded."""
    del verdict  # It is prose; the rows carry everything it was drawn from.
    keys = list(dict.fromkeys(key for row in summaries for key in row.point))
    lines = [_header(keys), *(_row(row, keys) for row in summaries)]
    return "".join(",".join(_quoted(cell) for cell in line) + "\n" for line in lines)


def _header(keys: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in Summary.__struct_fields__:
        if name == "point":
            found += [_text(f"point.{key}") for key in keys]
        else:
            found += [name, f"{name}_low", f"{name}_high"] if name in INTERVALS else [name]
    return found


def _row(row: Summary, keys: Sequence[str]) -> list[str]:
    found: list[str] = []
    for name in Summary.__struct_fields__:
        value = getattr(row, name)
        if name == "point":
            found += [_cell(row.point.get(key)) for key in keys]
        elif name in INTERVALS:
            found += _three(value)
        else:
            found.append(_cell(value))
    return found


def _three(found: Interval | None) -> list[str]:
    return [_cell(found.median), _cell(found.low), _cell(found.high)] if found else ["", "", ""]


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
