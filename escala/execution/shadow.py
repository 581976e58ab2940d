"""A network without numbers: shapes, types and devices of all tensors, and no memory behind them."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

Module = TypeVar("Module", bound=nn.Module)


def shadow(model: Module, mode: FakeTensorMode) -> Module:
    """A copy whose weights and buffers are fake tensors of `mode`; what is shared in the model is shared in it."""
    # Only what `deepcopy` finds already copied is not copied by it.
    copied: dict[int, object] = {}
    for weight in (*model.parameters(), *model.buffers()):
        copied[id(weight)] = mode.from_tensor(weight)
    return copy.deepcopy(model, copied)
