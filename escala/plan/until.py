"""`train.until`: which scores can be trained until, said before anything is trained."""

from __future__ import annotations

from collections.abc import Iterator

from escala.plan.preflight import Facts, MetricName
from escala.terms.errors import EscalaError
from escala.terms.experiment import TrainSpec

Told = tuple[str, str, str, str, str]
"""Code, key of `[train]`, what is wrong, what was expected, next step."""


def until_faults(train: TrainSpec, validation: float | None) -> Iterator[Told]:
    """What can be told of `train.until` without the data; `validation` is the share held out, where one is given."""
    if train.until is None:
        return
    if train.steps is not None:
        what = "train.until and train.steps are both given, and a budget of steps has no validation"
        yield "CFG-BUDGET", "until", what, "epochs beside until", "give epochs, the most to try, in place of steps"
    if validation == 0:
        what = "train.until is given, and workload.validation = 0 leaves no rows to reach it on"
        yield "CFG-VALUE", "until", what, "validation rows", "set workload.validation = 0.1, or take until away"


def check_until(label: str, train: TrainSpec, facts: Facts) -> None:
    """Raises CFG-VALUE where there are no validation rows, CFG-RANGE for a score that the metric cannot have."""
    if train.until is None:
        return
    where = f"strategy {label}"
    if not facts.use.rows.get("validation"):
        raise EscalaError(
            "CFG-VALUE",
            where,
            f"train.until = {train.until:g}, and {facts.use.name} has no validation rows here",
            expected="validation rows to reach it on",
            next_step="raise workload.validation or workload.limit, or take train.until away",
        )
    metric = facts.metrics[0]
    if not _within(train.until, metric):
        raise EscalaError(
            "CFG-RANGE",
            where,
            f"train.until = {train.until:g} is no {metric.name} to train until",
            expected=f"{metric.name}, of which {metric.better} is better, {_range(metric)}",
            next_step=_next_step(train.until, metric),
        )


def _within(value: float, metric: MetricName) -> bool:
    # The worst value there is would be reached by any network.
    higher = metric.better == "higher"
    above = metric.lowest is None or (value > metric.lowest if higher else value >= metric.lowest)
    below = metric.highest is None or (value <= metric.highest if higher else value < metric.highest)
    return above and below


def _range(metric: MetricName) -> str:
    higher = metric.better == "higher"
    ends = []
    if metric.lowest is not None:
        ends.append(f"{'above' if higher else 'at least'} {metric.lowest:g}")
    if metric.highest is not None:
        ends.append(f"{'at most' if higher else 'below'} {metric.highest:g}")
    return " and ".join(ends)


def _next_step(value: float, metric: MetricName) -> str:
    if metric.highest == 1 and 1 < value <= 100:
        return f"{value:g} % is train.until = {value / 100:g}"
    return "give a score in this range"
