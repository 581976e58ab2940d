"""Trials as TensorBoard's event files, one folder a trial. Needs the extra `tensorboard`, and no TensorFlow or torch.

Losses by optimiser step, epochs by their number. A record holds no moment for each step: within a run they are spread
evenly over the seconds of training.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from escala.analyse.plain import plain
from escala.report.extras import extra
from escala.report.times import began_s
from escala.terms.record import Record

_VERSION = "brain.Event:2"
_FOR = "--tensorboard"


class Scalar(NamedTuple):
    """One point of a curve: seconds since 1970, the place on its axis, the curve's name and its value."""

    at_s: float
    step: int
    tag: str
    value: float


def event_files(records: Iterable[Record]) -> Iterator[tuple[str, bytes]]:
    """Path within the folder, and content, of a file for each trial that has a curve.

    Raises EscalaError ENV-EXTRA without the package tensorboard.
    """
    taken: set[str] = set()
    for record in records:
        scalars = tuple(scalars_of(record))
        if scalars:
            folder = _folder(record.id, taken)
            taken.add(folder)
            yield f"{folder}/events.out.tfevents.{began_s(record):.0f}.escala", _written(record, scalars)


def scalars_of(record: Record) -> Iterator[Scalar]:
    """Everything of a trial that is a curve, or a figure of its end."""
    now_s = began_s(record) + (record.setup_s or 0.0)
    train_s = record.phases.train_s if record.phases else 0.0
    for place, loss in enumerate(record.losses, 1):
        yield Scalar(now_s + train_s * place / len(record.losses), place, "loss", loss)
    for number, epoch in enumerate(record.epochs, 1):
        now_s += epoch.train_s
        yield Scalar(now_s, number, "epoch/train_s", epoch.train_s)
        yield Scalar(now_s, number, "epoch/loss", epoch.loss)
        now_s += epoch.validation_s or 0.0
        if epoch.validation_s is not None:
            yield Scalar(now_s, number, "epoch/validation_s", epoch.validation_s)
        if epoch.score is not None:
            yield Scalar(now_s, number, "epoch/validation score", epoch.score)
    end_s = began_s(record) + (record.setup_s or 0.0) + (record.phases.total_s if record.phases else 0.0)
    for score in (*((record.score,) if record.score else ()), *record.other_scores):
        yield Scalar(end_s, record.steps, f"test/{plain(score.name)}", score.value)
    if record.samples_per_second is not None:
        yield Scalar(end_s, record.steps, "samples_per_second", record.samples_per_second)


def _folder(name: str, taken: set[str]) -> str:
    """A trial's id as one part of a path: it comes from a file, and could lead elsewhere."""
    part = re.sub(r"[^A-Za-z0-9._-]+", "-", name).lstrip(".-")[:120] or "trial"
    return next(one for one in (part, *(f"{part}-{n}" for n in range(2, len(taken) + 3))) if one not in taken)


def _written(record: Record, scalars: Iterable[Scalar]) -> bytes:
    writer_module = extra("tensorboard.summary.writer.record_writer", "tensorboard", _FOR)
    events = extra("tensorboard.compat.proto.event_pb2", "tensorboard", _FOR)
    summaries = extra("tensorboard.compat.proto.summary_pb2", "tensorboard", _FOR)
    target = io.BytesIO()
    writer = writer_module.RecordWriter(target)
    writer.write(events.Event(wall_time=began_s(record), file_version=_VERSION).SerializeToString())
    for scalar in scalars:
        writer.write(_event(events, summaries, scalar).SerializeToString())
    writer.flush()
    return target.getvalue()


def _event(events: Any, summaries: Any, scalar: Scalar) -> Any:
    value = summaries.Summary.Value(tag=scalar.tag, simple_value=scalar.value)
    return events.Event(wall_time=scalar.at_s, step=scalar.step, summary=summaries.Summary(value=[value]))
