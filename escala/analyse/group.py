"""Which records may be put together: the repeats of one trial on one host with one data set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

import msgspec

from escala.terms.record import Record

_encoder = msgspec.json.Encoder(order="deterministic")


class Group(msgspec.Struct, frozen=True):
    """Repeats of one row in recorded order; `digest` is the data that they, or their neighbours, saw."""

    records: tuple[Record, ...]
    digest: str | None
    likeness: tuple[str, ...]

    @property
    def done(self) -> tuple[Record, ...]:
        """Trainings that reached their end."""
        return tuple(one for one in self.records if one.outcome == "done" and one.trial.role != "profile")

    @property
    def profiled(self) -> tuple[Record, ...]:
        """Runs that looked at where time goes, and did nothing else."""
        return tuple(one for one in self.records if one.outcome == "done" and one.trial.role == "profile")

    @property
    def timed(self) -> tuple[Record, ...]:
        """Runs whose times count: one that was there for its energy is none, and a disturbed one stood still."""
        return tuple(record for record in self.done if record.trial.timed and _counts(record))

    @property
    def metered(self) -> tuple[Record, ...]:
        """Runs whose energy counts, if it could be read."""
        return tuple(record for record in self.done if record.trial.metered and _counts(record))


def grouped(records: Iterable[Record]) -> tuple[Group, ...]:
    """Records put together by label, sweep point, data content and host, in recorded order.

    The newest record of an id counts; an interrupted run says nothing. Two trials of one label that differ in
    anything but seed and repeat stay apart, as averaging them would mean nothing.
    """
    kept = _newest(records)
    digests = _Digests(kept)
    found: dict[tuple[object, ...], list[Record]] = {}
    for record in kept:
        key = (definition(record), digests.of(record), record.host.likeness)
        found.setdefault(key, []).append(record)
    return tuple(Group(tuple(group), digests.of(group[0]), group[0].host.likeness) for group in found.values())


def point_key(point: Mapping[str, Any]) -> bytes:
    """The values of a sweep point as something that can be looked up."""
    return _encoder.encode(point)


def samples_of(record: Record) -> int:
    """Training rows seen: the last batch of an epoch may be shorter."""
    batch, rows = record.trial.batch, record.data.rows.get("train") if record.data else None
    if not rows:
        return record.steps * batch
    epochs, rest = divmod(record.steps, -(-rows // batch))
    return epochs * rows + rest * batch


def _counts(record: Record) -> bool:
    has_times = record.phases is not None and 0 < record.phases.train_s < inf
    return has_times and "disturbed" not in record.doubts


def _newest(records: Iterable[Record]) -> list[Record]:
    newest: dict[str, Record] = {}
    for record in records:
        if record.outcome != "interrupted":
            newest.pop(record.id, None)
            newest[record.id] = record
    return list(newest.values())


def definition(record: Record) -> bytes:
    """Everything about a trial that its repeats have in common."""
    return _encoder.encode(msgspec.structs.replace(record.trial, id="", seed=0, repeat=0, role="both", unfit=None))


class _Digests:
    """Data content by record. A run that never saw its data belongs where its neighbours saw theirs."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._of_row: dict[tuple[object, ...], str] = {}
        self._of_point: dict[tuple[object, ...], str] = {}
        for record in records:
            if record.data is not None:
                row, point = self._keys(record)
                self._of_row.setdefault(row, record.data.digest)
                self._of_point.setdefault(point, record.data.digest)

    def of(self, record: Record) -> str | None:
        if record.data is not None:
            return record.data.digest
        row, point = self._keys(record)
        return self._of_row.get(row, self._of_point.get(point))

    @staticmethod
    def _keys(record: Record) -> tuple[tuple[object, ...], tuple[object, ...]]:
        trial = record.trial
        point = (point_key(trial.point), trial.data, record.host.likeness)
        return (trial.label, *point), point
