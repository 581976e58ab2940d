"""A network without numbers: shapes, types and devices of all tensors, and no memory behind them."""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

Module = TypeVar("Module", bound=nn.Module)


def shadow(model: Module, mode: FakeTensorMode, dtype: torch.dtype | None = None) -> Module:
    """A copy whose weights and buffers are fake tensors of `mode`; what is shared in the model is shared in it.

    Floating numbers are of `dtype`, as after `model.to(dtype)`, or of the model's own. Its layers pass by the code of
    their classes, without what an execution has put before it.
    """
    # Only what `deepcopy` finds already copied is not copied by it.
    copied: dict[int, object] = {}
    for value in (*model.parameters(), *model.buffers()):
        copied[id(value)] = _fake(value, mode, dtype)
    made = copy.deepcopy(model, copied)
    for layer in made.modules():
        # A function put there refers to the layer that it was made for, and so to numbers.
        vars(layer).pop("forward", None)
    return made


def _fake(value: Tensor, mode: FakeTensorMode, dtype: torch.dtype | None) -> Tensor:
    fake: Tensor = mode.from_tensor(value)
    if dtype is None or not value.is_floating_point() or value.dtype is dtype:
        return fake
    with mode:
        other = fake.detach().to(dtype)
    return nn.Parameter(other, value.requires_grad) if isinstance(value, nn.Parameter) else other
