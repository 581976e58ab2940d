"""What the peers that run on torch have in common."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import nn
from torch.utils.data import Sampler

from escala.execution.order import Order
from escala.execution.precision import set_flags
from escala.peers.base import Task


class Ordered(Sampler[int]):
    """Row numbers of an epoch in a given order; loaders call `set_epoch`, as they do with torch's own sampler."""

    def __init__(self, orders: Sequence[Order]) -> None:
        self._orders = orders
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __iter__(self) -> Iterator[int]:
        return iter(self._orders[self._epoch].tolist())

    def __len__(self) -> int:
        return len(self._orders[self._epoch])


def device_of(task: Task) -> torch.device:
    """The task's only device, with products in full float32, as `single` has them."""
    set_flags("fp32")
    (name,) = task.devices
    return torch.device(name)


def optimizer_of(task: Task, model: nn.Module) -> torch.optim.Optimizer:
    """What a user writes as `torch.optim.SGD(model.parameters(), ...)`."""
    return task.workload.optimizer(model.parameters(), task.train)
