"""A bare loop in PyTorch, written as anybody would: rows sliced from memory, no loader, nothing tuned."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from escala.execution.order import Order
from escala.execution.synchronise import synchroniser
from escala.peers.base import Edges, Floats, Peer, Task
from escala.peers.torch_parts import device_of, optimizer_of


def fit(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    data: tuple[Tensor, Tensor],
    orders: Sequence[Tensor],
    batch: int,
    device: torch.device,
    validation: Tensor | None,
    chunk: int,
    edges: Edges,
) -> None:
    """All epochs."""
    inputs, targets = data
    # user code begins
    for order in orders:
        edges.training_begins()
        model.train()
        losses = []
        for rows in order.split(batch):
            images, labels = inputs[rows].to(device), targets[rows].to(device)
            optimizer.zero_grad()
            loss = cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        edges.training_ended(torch.stack(losses).tolist())
        if validation is not None:
            edges.validation_begins()
            edges.validated(predict(model, validation, chunk, device))
    # user code ends


def predict(model: nn.Module, inputs: Tensor, chunk: int, device: torch.device) -> Floats:
    """The network's outputs."""
    # user code begins
    model.eval()
    with torch.no_grad():
        outputs = [model(images.to(device)) for images in inputs.split(chunk)]
    return torch.cat(outputs).cpu().numpy()
    # user code ends


class Plain(Peer):
    """The loop above, in one process."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._device = device_of(task)
        # user code begins
        self._data = torch.from_numpy(task.inputs), torch.from_numpy(task.targets)
        # user code ends
        self._validation = None if task.validation is None else torch.from_numpy(task.validation)
        self._wait = synchroniser([self._device])
        self._model = task.model

    def train(self, orders: Sequence[Order], edges: Edges) -> None:
        task = self._task
        self._model = deepcopy(task.model)
        # user code begins
        self._model.to(self._device)
        optimizer = optimizer_of(task, self._model)
        # user code ends
        lines = [torch.from_numpy(order) for order in orders]
        batch, chunk = task.train.batch, task.chunk
        fit(self._model, optimizer, self._data, lines, batch, self._device, self._validation, chunk, edges)

    def predict(self, inputs: NDArray[Any]) -> Floats:
        return predict(self._model, torch.from_numpy(inputs), self._task.chunk, self._device)

    def synchronise(self) -> None:
        self._wait()
