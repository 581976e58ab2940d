"""What a table says of memory: what was the most, and what was expected."""

from __future__ import annotations

from collections.abc import Sequence

from escala.analyse.language import marked, say
from escala.analyse.row import Summary
from escala.analyse.wording import size
from escala.report.column import Column

PEAK = marked("peak\nmemory")
HOST = marked("host\nmemory")
EXPECTED = marked("expected\nmemory")
HOST_LEGEND = marked(
    "Peak memory is that of the fullest device that a row trained on, host memory what its processes held beside it, "
    "all together."
)
EXPECTED_LEGEND = marked(
    "Expected memory is the peak of the fullest device as a step without numbers told before the run."
)


def memory_columns(rows: Sequence[Summary]) -> tuple[Column, ...]:
    """Of the fullest device, of the host beside it, and what was expected of the device."""
    return (
        Column(say(PEAK), tuple(_told(row.peak_bytes) for row in rows)),
        Column(say(HOST), tuple(_told(row.host_bytes) for row in rows)),
        Column(say(EXPECTED), tuple(_told(max(row.memory_estimate_bytes.values(), default=None)) for row in rows)),
    )


def _told(found: int | None) -> str:
    return "" if found is None else size(found)
