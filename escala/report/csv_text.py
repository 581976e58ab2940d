"""A report as CSV: one line a row, raw values, safe to open in a spreadsheet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import inf, isfinite

from escala.analyse.annex import NOTHING, Annex
from escala.analyse.plain import plain
from escala.analyse.row import Summary
from escala.analyse.verdict import Verdict
from escala.report.flat import Value, flat

# A spreadsheet runs what begins like this; the wide forms count as the narrow ones in some locales.
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
# A semicolon or a tab would part the cell where a locale parts by them.
_QUOTED = re.compile(r"[\",;\t\r\n]")


def write(summaries: Sequence[Summary], verdict: Verdict, annex: Annex = NOTHING) -> str:
    """One line a summary, in the fields' order, with a column for each swept key, further score, and part or phase of
    which there is energy.

    Figures are not rounded. Where the annex goes epoch by epoch there is one line an epoch instead. Published figures
    stand in the other formats: they are of several kinds, which no column could hold.
    """
    del verdict  # It is prose; the rows carry everything it was drawn from.
    names, rows = flat(summaries, annex)
    return lines([names, *rows])


def lines(rows: Iterable[Sequence[Value]]) -> str:
    """Rows of values as lines of cells; what is no number is made safe."""
    return "".join(",".join(_quoted(_cell(value)) for value in row) + "\n" for row in rows)


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not isfinite(value):
        # What never happened is no figure that is missing.
        return "inf" if value == inf else ""
    return _text(str(value))


def _text(value: str) -> str:
    clean = plain(value)
    return f"'{clean}" if clean.startswith(_FORMULA) and not _NUMBER.fullmatch(clean) else clean


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if _QUOTED.search(cell) else cell
