"""A network without numbers passes shapes, and holds on to nothing of the network it was made from."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from escala.execution.checkpointing import checkpointed
from escala.execution.shadow import shadow


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 6), nn.Linear(6, 3))


@pytest.mark.parametrize("wanted", [False, True])
def test_shapes_pass_and_numbers_stay(wanted: bool) -> None:
    model = network()
    checkpointed(model, tuple(model), wanted, None)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    mode = FakeTensorMode()
    made = shadow(model, mode)
    with mode:
        outputs = made(torch.empty(5, 4))
        outputs.sum().backward()
    assert outputs.shape == (5, 3)
    assert all(isinstance(weight, FakeTensor) for weight in (*made.parameters(), *made.buffers()))
    assert all(weight.grad is None for weight in model.parameters())
    assert all(value.equal(before[name]) for name, value in model.state_dict().items())


def test_what_layers_share_they_share_in_the_shadow() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    model[1].weight = model[0].weight
    made = shadow(model, FakeTensorMode())
    assert made[0].weight is made[1].weight
    assert len(list(made.parameters())) == 3
