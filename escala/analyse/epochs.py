"""Epoch by epoch: what training and validation gave, over the runs of each row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct

from escala.analyse.bootstrap import interval_of
from escala.analyse.group import grouped, point_key
from escala.analyse.row import Interval, Summary
from escala.terms.record import Epoch, Record


class EpochRow(Struct, frozen=True):
    """Epoch `number`, from 1, of one row. `score` is over the validation rows; None: there were none."""

    label: str
    point: dict[str, Any]
    likeness: tuple[str, ...]
    number: int
    runs: int
    train_s: Interval | None
    validation_s: Interval | None
    loss: Interval | None
    score: Interval | None
    score_name: str | None


def by_epoch(records: Iterable[Record], summaries: Sequence[Summary]) -> tuple[EpochRow, ...]:
    """A line for each epoch of each row, in the order of `summaries`, which come of the same records."""
    groups = {
        (one.records[0].trial.label, point_key(one.records[0].trial.point), one.digest, one.likeness): one
        for one in grouped(records)
    }
    found: list[EpochRow] = []
    for row in summaries:
        group = groups[row.label, point_key(row.point), row.digest, row.likeness]
        # Times of a disturbed run do not count; what it learned does.
        timed = {record.id for record in group.timed}
        for place in range(max((len(record.epochs) for record in group.done), default=0)):
            here = [(record.epochs[place], record.id in timed) for record in group.done if len(record.epochs) > place]
            found.append(_row(row, place + 1, here))
    return tuple(found)


def _row(row: Summary, number: int, here: Sequence[tuple[Epoch, bool]]) -> EpochRow:
    return EpochRow(
        label=row.label,
        point=row.point,
        likeness=row.likeness,
        number=number,
        runs=len(here),
        train_s=interval_of(epoch.train_s for epoch, timed in here if timed),
        validation_s=interval_of(epoch.validation_s for epoch, timed in here if timed),
        loss=interval_of((epoch.loss for epoch, _ in here), any_sign=True),
        score=interval_of((epoch.score for epoch, _ in here), any_sign=True),
        score_name=row.score_name,
    )
