"""A report as a Parquet file: the table of the CSV report with typed columns. Needs the extra `parquet`."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

from escala.analyse.annex import Annex
from escala.analyse.row import Summary
from escala.report.extras import extra
from escala.report.flat import Value, flat


def parquet_bytes(summaries: Sequence[Summary], annex: Annex) -> bytes:
    """The file's content: a row for each summary, or for each epoch where the annex goes epoch by epoch.

    Numbers are numbers, texts are as they were recorded, what is missing is null, and infinite is never. Raises
    EscalaError ENV-EXTRA without pyarrow.
    """
    what = "--format parquet"
    arrow, parquet = extra("pyarrow", "parquet", what), extra("pyarrow.parquet", "parquet", what)
    names, rows = flat(summaries, annex)
    columns = [_column(arrow, [row[place] for row in rows]) for place in range(len(names))]
    target = io.BytesIO()
    parquet.write_table(arrow.table(columns, names=names), target)
    return target.getvalue()


def _column(arrow: Any, values: Sequence[Value]) -> Any:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool}:
        return arrow.array(values, type=arrow.bool_() if kinds else arrow.null())
    if kinds <= {int}:
        return arrow.array(values, type=arrow.int64())
    if kinds <= {int, float}:
        return arrow.array([None if value is None else float(value) for value in values], type=arrow.float64())
    return arrow.array([None if value is None else str(value) for value in values], type=arrow.string())
