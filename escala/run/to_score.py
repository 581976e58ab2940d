"""How soon a trial came to the score that it was to train until."""

from __future__ import annotations

from collections.abc import Sequence

from escala.plan.preflight import MetricName
from escala.terms.experiment import TrainSpec
from escala.terms.record import Epoch, Phases, ToScore, reaches


def to_score(
    train: TrainSpec, metrics: Sequence[MetricName], epochs: Sequence[Epoch], phases: Phases, steps: int
) -> ToScore | None:
    """The account of a trial with `train.until`; None for one without. Training ended where it was reached."""
    if train.until is None:
        return None
    metric = metrics[0]
    last = epochs[-1].score if epochs else None
    return ToScore(
        metric=metric.name,
        target=train.until,
        reached=reaches(last, train.until, metric.better),
        epochs=len(epochs),
        steps=steps,
        train_s=phases.train_s,
        total_s=phases.train_s + (phases.validation_s or 0.0),
        better=metric.better,
    )
