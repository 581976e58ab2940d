"""Epoch by epoch: what training and validation gave, over the runs of each row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from escala.analyse.bootstrap import intervals_of
from escala.analyse.group import grouped, point_key
from escala.analyse.row import Interval, Summary
from escala.terms.record import Record


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
        found += _rows(row, group.done, timed)
    return tuple(found)


def _rows(row: Summary, done: Sequence[Record], timed: Collection[str]) -> Iterator[EpochRow]:
    most = max((len(record.epochs) for record in done), default=0)
    here = [
        [(record.epochs[place], record.id in timed) for record in done if len(record.epochs) > place]
        for place in range(most)
    ]
    train_s = intervals_of([[epoch.train_s for epoch, counts in one if counts] for one in here])
    validation_s = intervals_of([[epoch.validation_s for epoch, counts in one if counts] for one in here])
    loss = intervals_of([[epoch.loss for epoch, _ in one] for one in here], any_sign=True)
    score = intervals_of([[epoch.score for epoch, _ in one] for one in here], any_sign=True)
    for place, runs in enumerate(here):
        yield EpochRow(
            label=row.label,
            point=row.point,
            likeness=row.likeness,
            number=place + 1,
            runs=len(runs),
            train_s=train_s[place],
            validation_s=validation_s[place],
            loss=loss[place],
            score=score[place],
            score_name=row.score_name,
        )
