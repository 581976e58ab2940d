"""`train.until`: read, varied, and refused before anything is trained."""

from __future__ import annotations

from typing import Any

import pytest

from escala.plan.expand import trials, workloads_of
from escala.plan.preflight import Facts, MetricName, Preflight
from escala.plan.read import parse
from escala.terms.errors import EscalaError
from escala.terms.host import Host
from escala.terms.record import DataUse
from escala.terms.trial import Trial

TEXT = """
[workload]
name = "mlp"
data = "d"
#workload
[train]
epochs = 20
#train
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
#ddp
[measure]
repeats = 1
"""
ACCURACY = MetricName("accuracy", "higher", 0.0, 1.0)
PERPLEXITY = MetricName("perplexity", "lower", 1.0)


def written(**lines: str) -> str:
    text = TEXT
    for place, line in lines.items():
        text = text.replace(f"#{place}\n", f"{line}\n")
    return text


def expanded(text: str, metric: MetricName = ACCURACY, validation: int = 80) -> tuple[Trial, ...]:
    asked = parse(text, "e.toml").experiment
    use = DataUse("d", "real", "w", "x", {"train": 920, "validation": validation, "test": 10}, 10)
    facts = tuple(Facts(spec, "d", use, 1, 1, (metric,)) for spec in workloads_of(asked))
    return trials(asked, Preflight(Host(cpu="c", cores=2, memory_bytes=1, system="s"), facts))


def refused(text: str, **more: Any) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        expanded(text, **more)
    assert caught.value.exit == 2
    assert "\n" not in str(caught.value)
    assert caught.value.next_step
    return caught.value


def test_every_trial_knows_the_score_to_reach() -> None:
    assert {trial.train.until for trial in expanded(written(train="until = 0.9"))} == {0.9}
    assert {trial.train.until for trial in expanded(written())} == {None}


def test_a_strategy_may_have_its_own_and_a_sweep_varies_it() -> None:
    own = expanded(written(train="until = 0.9", ddp="train = { until = 0.8 }"))
    assert {trial.label: trial.train.until for trial in own} == {"single": 0.9, "ddp x2": 0.8}
    swept = expanded(TEXT + '[sweep]\n"train.until" = [0.8, 0.9]\n')
    assert sorted(trial.train.until or 0 for trial in swept) == [0.8, 0.8, 0.9, 0.9]


def test_the_score_to_reach_decides_the_id() -> None:
    ids = {expanded(written(train=line))[0].id for line in ("until = 0.9", "until = 0.91", "")}
    assert len(ids) == 3


def test_a_budget_of_steps_has_nothing_to_reach_it_with() -> None:
    error = refused(written(train="until = 0.9").replace("epochs = 20", "steps = 20"))
    assert error.code == "CFG-BUDGET"
    assert "no validation" in error.what
    own = refused(written(train="until = 0.9", ddp="train = { steps = 20 }"))
    assert own.code == "CFG-BUDGET"


def test_without_validation_rows_it_cannot_be_reached() -> None:
    error = refused(written(train="until = 0.9", workload="validation = 0"))
    assert error.code == "CFG-VALUE"
    assert "workload.validation = 0 leaves no rows" in error.what
    few = refused(written(train="until = 0.9"), validation=0)
    assert few.code == "CFG-VALUE"
    assert "no validation rows" in few.what
    assert expanded(written(), validation=0)


@pytest.mark.parametrize(
    ("until", "metric", "told"),
    [
        ("90", ACCURACY, "90 % is train.until = 0.9"),
        ("1.01", ACCURACY, "above 0 and at most 1"),
        ("0.0", ACCURACY, "above 0 and at most 1"),
        ("-0.5", ACCURACY, "above 0 and at most 1"),
        ("0.99", PERPLEXITY, "perplexity, of which lower is better, at least 1"),
    ],
)
def test_a_score_that_the_metric_cannot_have_is_refused(until: str, metric: MetricName, told: str) -> None:
    error = refused(written(train=f"until = {until}"), metric=metric)
    assert error.code == "CFG-RANGE"
    assert told in str(error)


@pytest.mark.parametrize(("until", "metric"), [("1", ACCURACY), ("1.0", PERPLEXITY), ("-3.5", MetricName("r"))])
def test_every_score_that_the_metric_can_have_is_taken(until: str, metric: MetricName) -> None:
    assert expanded(written(train=f"until = {until}"), metric=metric)[0].train.until == float(until)


@pytest.mark.parametrize("until", ["inf", "nan", "-inf", '"0.9"', "true"])
def test_what_is_no_finite_number_is_refused(until: str) -> None:
    with pytest.raises(EscalaError) as caught:
        expanded(written(train=f"until = {until}"))
    assert caught.value.code == ("CFG-RANGE" if until in ("inf", "nan", "-inf") else "CFG-TYPE")
