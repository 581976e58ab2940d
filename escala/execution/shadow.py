"""A network without numbers: shapes, types and devices of all tensors, and no memory behind them."""

from __future__ import annotations

import copy
from typing import TypeVar

from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

Module = TypeVar("Module", bound=nn.Module)


def shadow(model: Module, mode: FakeTensorMode) -> Module:
    """A copy whose weights and buffers are fake tensors of `mode`; what is shared in the model is shared in it.

    Its layers pass by the code of their classes, without what an execution has put before it.
    """
    # Only what `deepcopy` finds already copied is not copied by it.
    copied: dict[int, object] = {}
    for weight in (*model.parameters(), *model.buffers()):
        copied[id(weight)] = mode.from_tensor(weight)
    made = copy.deepcopy(model, copied)
    for layer in made.modules():
        # A function put there refers to the layer that it was made for, and so to numbers.
        vars(layer).pop("forward", None)
    return made
