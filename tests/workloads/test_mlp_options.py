"""The MLP's hidden sizes and its activation."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from escala.terms.errors import EscalaError
from escala.workloads import workload


def test_the_default_is_the_published_network() -> None:
    torch.manual_seed(0)
    model = workload("mlp", {}).model()
    assert [type(layer) for layer in model.children()] == [
        nn.Flatten,
        *[nn.Linear, nn.ReLU, nn.Dropout] * 2,
        nn.Linear,
    ]
    assert sum(parameter.numel() for parameter in model.parameters()) == 669_706
    assert workload("mlp", {}).tensor_plan() == {"1": "column", "4": "row"}


def test_sizes_and_activation_may_be_chosen() -> None:
    work = workload("mlp", {"hidden": [192], "activation": "sigmoid", "dropout": 0})
    model = work.model()
    assert sum(parameter.numel() for parameter in model.parameters()) == 784 * 192 + 192 + 192 * 10 + 10
    assert [type(layer) for layer in model.children()] == [nn.Flatten, nn.Linear, nn.Sigmoid, nn.Dropout, nn.Linear]
    assert work.tensor_plan() == {"1": "column", "4": "row"}
    deep = workload("mlp", {"hidden": [32, 16, 8]})
    assert deep.tensor_plan() == {"1": "column", "4": "row", "7": "column", "10": "row"}
    assert deep.model()(torch.zeros(2, 1, 28, 28)).shape == (2, 10)
    names = dict(deep.model().named_modules())
    assert all(isinstance(names[name], nn.Linear) for name in deep.tensor_plan())


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"hidden": []}, "CFG-RANGE"),
        ({"hidden": [0]}, "CFG-RANGE"),
        ({"hidden": 512}, "CFG-TYPE"),
        ({"hidden": [512.5]}, "CFG-TYPE"),
        ({"hidden": [True]}, "CFG-TYPE"),
        ({"hidden": ["512"]}, "CFG-TYPE"),
        ({"activation": "sigmoidal"}, "CFG-VALUE"),
        ({"activation": 1}, "CFG-TYPE"),
    ],
)
def test_what_makes_no_network_is_refused(options: dict[str, Any], code: str) -> None:
    with pytest.raises(EscalaError) as caught:
        workload("mlp", options)
    assert caught.value.code == code
