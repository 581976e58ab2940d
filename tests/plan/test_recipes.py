"""Rules on learning rates and microbatches."""

from __future__ import annotations

import pytest

from escala.plan.read import parse
from escala.terms.errors import EscalaError, Exit

TEXT = """
[workload]
name = "mlp"
[train]
batch = 100
epochs = 1
#train
[execution]
microbatch = 100
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 3
execution = { microbatch = 25 }
train = { batch = 150 }
"""


def refused(text: str) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        parse(text, "x.toml")
    assert caught.value.exit is Exit.CONFIG
    assert "\n" not in str(caught.value)
    return caught.value


def test_microbatches_that_divide_are_taken() -> None:
    assert parse(TEXT, "x.toml").experiment.execution.microbatch == 100


@pytest.mark.parametrize(
    ("batch", "nearest"), [(100, "nearest: 75 or 150"), (149, "nearest: 75 or 150"), (20, "nearest: 75")]
)
def test_a_batch_that_does_not_divide_names_the_nearest_that_do(batch: int, nearest: str) -> None:
    error = refused(TEXT.replace("batch = 150", f"batch = {batch}"))
    assert error.code == "CFG-BATCH"
    assert f"a batch of {batch} is no multiple of 75: ddp x3 has 3 x microbatches of 25" in str(error)
    assert nearest in str(error)
    assert error.where == "x.toml:15"


def test_weak_scaling_multiplies_before_the_batch_is_divided() -> None:
    assert parse(TEXT.replace("train = { batch = 150 }", 'scaling = "weak"'), "x.toml")
    error = refused(TEXT.replace("train = { batch = 150 }", 'scaling = "weak"').replace("= 25", "= 40"))
    assert "a batch of 300 is no multiple of 120" in str(error)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ('lr_rule = "linear"', "train.lr_rule = linear without train.base_batch"),
        ('schedule = "step"', "train.schedule = step without train.decay_steps"),
    ],
)
def test_half_a_recipe_is_refused_with_what_is_missing(line: str, what: str) -> None:
    error = refused(TEXT.replace("#train", line))
    assert error.code == "CFG-VALUE"
    assert what in str(error)
    assert str(error).count(what) == 1


def test_whole_recipes_are_taken() -> None:
    text = TEXT.replace("#train", 'lr_rule = "sqrt"\nbase_batch = 50\nschedule = "step"\ndecay_steps = 9')
    assert parse(text, "x.toml").experiment.train.base_batch == 50
