from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from escala.terms.errors import EscalaError
from escala.terms.experiment import TrainSpec
from escala.workloads import WORKLOADS, workload
from escala.workloads.base import pixels

PARAMETERS = {"mlp": 669_706, "cnn-small": 421_642}


def test_every_workload_has_its_published_number_of_parameters() -> None:
    assert set(PARAMETERS) == set(WORKLOADS)
    for name, expected in PARAMETERS.items():
        model = workload(name, {}).model()
        assert sum(parameter.numel() for parameter in model.parameters()) == expected


@pytest.mark.parametrize("name", WORKLOADS)
def test_rows_go_in_and_one_logit_a_class_comes_out(name: str) -> None:
    work = workload(name, {})
    model = work.model()
    raw = torch.randint(0, 256, (5, 28, 28), dtype=torch.uint8)
    outputs = model(work.inputs(raw, torch.float32))
    assert outputs.shape == (5, 10)
    targets = torch.tensor([0, 1, 2, 3, 4])
    assert work.count(targets) == 5
    mean = torch.nn.functional.cross_entropy(outputs, targets)
    assert work.loss(outputs, targets).item() == pytest.approx(5 * mean.item(), rel=1e-6)
    assert 0 <= work.score(outputs, targets).item() <= 5
    assert [id(block) for block in work.blocks(model)] == [id(child) for child in model.children()]
    named = dict(model.named_modules())
    assert set(work.tensor_plan()) <= set(named)


@settings(deadline=None, max_examples=25)
@given(st.sampled_from([torch.float32, torch.float64]), st.integers(1, 9))
def test_pixels_are_the_same_numbers_in_any_type(dtype: torch.dtype, rows: int) -> None:
    raw = torch.randint(0, 256, (rows, 28, 28), dtype=torch.uint8)
    made = pixels(raw, dtype)
    assert made.shape == (rows, 1, 28, 28)
    assert made.dtype is dtype
    assert torch.equal(made.double(), (raw.to(dtype) / 127.5 - 1).unsqueeze(1).double())


def test_dropout_is_an_option() -> None:
    dropouts = [layer.p for layer in workload("mlp", {"dropout": 0.5}).model() if isinstance(layer, torch.nn.Dropout)]
    assert dropouts == [0.5, 0.5]


@pytest.mark.parametrize(
    ("options", "code"),
    [({"dropuot": 0.1}, "CFG-KEY"), ({"dropout": "much"}, "CFG-TYPE"), ({"dropout": True}, "CFG-TYPE")],
)
def test_wrong_options_are_refused(options: dict[str, object], code: str) -> None:
    with pytest.raises(EscalaError) as caught:
        workload("mlp", options)
    assert caught.value.code == code


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "adamw"])
def test_the_recipe_reaches_the_optimiser(optimizer: str) -> None:
    work = workload("mlp", {})
    train = TrainSpec(optimizer=optimizer, lr=0.125, weight_decay=0.25)  # type: ignore[arg-type]
    made = work.optimizer(work.model().parameters(), train)
    assert type(made).__name__.lower() == optimizer
    assert made.defaults["lr"] == 0.125
    assert made.defaults["weight_decay"] == 0.25
