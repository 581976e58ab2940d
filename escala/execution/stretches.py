"""An optimiser's step on stretches of one large weight, where the rest of its gradient is still on its way.

A weight that makes up half of a network would keep the whole step waiting for its last element. What SGD and Adam do
to an element depends on no other, so a stretch of the weight, with the same stretch of their state, is stepped on as
if it were a weight of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

_BY_ELEMENT = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)


@dataclass(frozen=True)
class Stretch:
    """Elements of a weight, counted as they lie in memory, whose gradients are complete; `gradient`: that of all."""

    weight: nn.Parameter
    gradient: Tensor
    elements: slice

    @property
    def last(self) -> bool:
        return bool(self.elements.stop == self.weight.numel())


def divisible(optimizer: torch.optim.Optimizer, weight: nn.Parameter) -> bool:
    """Whether the optimiser can step on stretches of the weight: not before a first step, which makes its state."""
    state = optimizer.state.get(weight, {})
    kept = [one for one in state.values() if not (isinstance(one, Tensor) and one.dim() == 0)]
    alike = all(isinstance(one, Tensor) and one.stride() == weight.stride() for one in kept)
    return type(optimizer) in _BY_ELEMENT and bool(kept) and alike


def step_on(optimizer: torch.optim.Optimizer, stretch: Stretch) -> None:
    """Only for one that is `divisible`; other parameters without a gradient stay as they are."""
    with _instead(optimizer, stretch):
        optimizer.step()


@contextmanager
def _instead(optimizer: torch.optim.Optimizer, stretch: Stretch) -> Iterator[None]:
    """The stretch stands in for the weights of its group."""
    group = next(some for some in optimizer.param_groups if any(one is stretch.weight for one in some["params"]))
    part = nn.Parameter(_row(stretch.weight.detach())[stretch.elements])
    part.grad = _row(stretch.gradient)[stretch.elements]
    optimizer.state[part] = {key: _part_of(one, stretch) for key, one in optimizer.state[stretch.weight].items()}
    weights, group["params"] = group["params"], [part]
    try:
        yield
    finally:
        group["params"] = weights
        del optimizer.state[part]


def _part_of(kept: Any, stretch: Stretch) -> Any:
    if kept.dim():
        return _row(kept)[stretch.elements]
    # A count of steps, which only the last stretch may move.
    return kept if stretch.last else kept.clone()


def _row(dense: Tensor) -> Tensor:
    return dense.as_strided((dense.numel(),), (1,))
