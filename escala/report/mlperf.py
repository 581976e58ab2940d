"""Trials as lines in the form of MLPerf's training logs: `:::MLLOG` and a JSON object.

Form and keys are those of `mlperf_logging.mllog` (github.com/mlcommons/logging). A record holds durations and not the
moments between them, so the times of a line are made from these: the trial's start, then set-up, then each epoch's
training and validation, then the test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any, NamedTuple

from escala.analyse.plain import plain
from escala.report.json_text import compact
from escala.report.times import began_s
from escala.terms.record import Record

POINT = "POINT_IN_TIME"
START = "INTERVAL_START"
END = "INTERVAL_END"


class Event(NamedTuple):
    """One line but for its trial: seconds from the trial's start."""

    at_s: float
    kind: str
    key: str
    value: Any = None
    about: dict[str, Any] = {}  # noqa: RUF012 - never changed


def mlperf_lines(records: Iterable[Record]) -> str:
    """The lines of every trial that was started, trial after trial; the namespace of a line is the trial's id."""
    return "".join(
        _line(record, event) for record in records if record.outcome != "unfit" for event in _events(record)
    )


def _line(record: Record, event: Event) -> str:
    told = {
        "namespace": plain(record.id),
        "time_ms": round(1000 * (began_s(record) + event.at_s)),
        "event_type": event.kind,
        "key": event.key,
        "value": event.value,
        "metadata": event.about,
    }
    return f":::MLLOG {compact(told)}\n"


def _events(record: Record) -> Iterator[Event]:
    setup_s = record.setup_s or 0.0
    yield from (Event(0.0, POINT, key, value) for key, value in _recipe(record).items() if value is not None)
    yield Event(0.0, START, "init_start")
    yield Event(setup_s, END, "init_stop")
    yield Event(setup_s, START, "run_start", None, _who(record))
    now_s = setup_s
    for event in _epochs(record, setup_s):
        yield event
        now_s = event.at_s
    if record.phases is None:
        yield _stop(record, max(now_s, record.wall_s or 0.0))
        return
    now_s = max(now_s, setup_s + record.phases.train_s + (record.phases.validation_s or 0.0))
    # With a target, a run is as long as it takes to get there, and the test is no part of it.
    if record.to_score is not None:
        yield _stop(record, now_s)
    test_s = record.phases.test_s
    if test_s is not None:
        value = record.score.value if record.score else None
        yield from _evaluation(now_s, test_s, value, {"split": "test"} | _metric(record))
    if record.to_score is None:
        yield _stop(record, now_s + (test_s or 0.0))


def _recipe(record: Record) -> dict[str, Any]:
    trial, rows = record.trial, record.data.rows if record.data else {}
    train = trial.train
    execution = record.execution or trial.execution
    share = max((seat.batch for seat in trial.seats), default=trial.batch)
    return {
        "submission_benchmark": plain(trial.workload),
        "global_batch_size": trial.batch,
        "train_samples": rows.get("train"),
        "eval_samples": rows.get("test"),
        "seed": trial.seed,
        "gradient_accumulation_steps": -(-share // execution.at_once) if execution.at_once else 1,
        "opt_name": train.optimizer,
        "opt_base_learning_rate": train.lr,
        "opt_weight_decay": train.weight_decay,
        "opt_learning_rate_warmup_steps": train.warmup_steps,
        "opt_gradient_clip_norm": train.clip_norm,
    }


def _who(record: Record) -> dict[str, Any]:
    trial = record.trial
    return {
        "label": plain(trial.label),
        "point": trial.point,
        "repeat": trial.repeat,
        "strategy": plain(trial.strategy.name),
        "ways": trial.strategy.ways,
        "device": plain(trial.strategy.device),
        "precision": (record.execution or trial.execution).precision,
    }


def _epochs(record: Record, now_s: float) -> Iterator[Event]:
    for number, epoch in enumerate(record.epochs, 1):
        about = {"epoch_num": number}
        yield Event(now_s, START, "epoch_start", None, about)
        now_s += epoch.train_s
        yield Event(now_s, END, "epoch_stop", None, about)
        if epoch.validation_s is not None:
            yield from _evaluation(now_s, epoch.validation_s, epoch.score, about | {"split": "validation"})
            now_s += epoch.validation_s


def _evaluation(now_s: float, lasting_s: float, score: float | None, about: dict[str, Any]) -> Iterator[Event]:
    yield Event(now_s, START, "eval_start", None, about)
    if score is not None and isfinite(score):
        yield Event(now_s + lasting_s, POINT, "eval_accuracy", score, about)
    yield Event(now_s + lasting_s, END, "eval_stop", None, about)


def _metric(record: Record) -> dict[str, Any]:
    return {"metric": plain(record.score.name)} if record.score else {}


def _stop(record: Record, at_s: float) -> Event:
    reached = record.outcome == "done" and (record.to_score is None or record.to_score.reached)
    about = {"status": "success" if reached else "aborted", "outcome": record.outcome}
    if record.reason:
        about["reason"] = plain(record.reason)
    return Event(at_s, END, "run_stop", None, about)
