"""What one seat of tensor parallelism holds of a network, as a shadow without numbers and without the other seats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from escala.strategies.splits import Split


def keep_part(fake: nn.Module, plan: Iterable[Split], parts: int) -> None:
    """Cut layers of the plan in place, as `tensored.styles` would, to one of equal parts; shapes are as there."""
    columns = list[nn.Linear]()
    for split in plan:
        layer: Any = fake.get_submodule(split.name)
        if split.way == "column":
            columns.append(layer)
            layer.weight = nn.Parameter(layer.weight.detach().chunk(parts, 0)[0].clone())
            if layer.bias is not None:
                layer.bias = nn.Parameter(layer.bias.detach().chunk(parts, 0)[0].clone())
        else:
            layer.weight = nn.Parameter(layer.weight.detach().chunk(parts, 1)[0].clone())
            if not columns:
                layer.register_forward_pre_hook(lambda _, given: (given[0].chunk(parts, -1)[0].contiguous(),))
            columns = []
    for layer in columns:
        layer.register_forward_hook(lambda *passed: torch.cat([passed[-1]] * parts, -1))
