"""What a seat keeps between steps, in bytes."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from escala.strategies.dtensors import local


def held_bytes(core: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, int]:
    """By device: this seat's weights, buffers, gradients as they are now, and its part of the optimiser's state.

    Each storage counts once and whole, as it takes room; so do weights that share one, and buckets of gradients.
    """
    found = dict[tuple[str, int], int]()
    for value in _tensors(core, optimizer):
        storage = local(value).untyped_storage()
        found[str(storage.device), storage.data_ptr()] = storage.nbytes()
    totals = dict[str, int]()
    for (device, _), size in found.items():
        totals[device] = totals.get(device, 0) + size
    return totals


def _tensors(core: nn.Module, optimizer: torch.optim.Optimizer) -> Iterator[Tensor]:
    for weight in core.parameters():
        yield weight
        if weight.grad is not None:
            yield weight.grad
    yield from core.buffers()
    for values in optimizer.state.values():
        yield from (value for value in values.values() if isinstance(value, Tensor))
