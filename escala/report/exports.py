"""Formats for other programs that need the records, or that are no text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from escala.analyse.annex import Annex
from escala.analyse.row import Summary
from escala.terms.record import Record

Export = Callable[[Sequence[Record], Sequence[Summary], Annex], bytes]


def _mlperf(records: Sequence[Record], summaries: Sequence[Summary], annex: Annex) -> bytes:
    from escala.report.mlperf import mlperf_lines

    del summaries, annex
    return mlperf_lines(records).encode()


def _parquet(records: Sequence[Record], summaries: Sequence[Summary], annex: Annex) -> bytes:
    from escala.report.parquet_file import parquet_bytes

    del records
    return parquet_bytes(summaries, annex)


EXPORTS: dict[str, Export] = {"mlperf": _mlperf, "parquet": _parquet}
BINARY = ("parquet",)
"""No text, so that a screen is no place for them."""
