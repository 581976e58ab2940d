"""When a trial began, as programs that draw time axes want it."""

from __future__ import annotations

from datetime import datetime

from escala.terms.record import Record


def began_s(record: Record) -> float:
    """Seconds since 1970 at the trial's start; 0 where the record does not say."""
    try:
        return datetime.fromisoformat(record.started).timestamp()
    except ValueError:
        return 0.0
