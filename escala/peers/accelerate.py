"""Hugging Face Accelerate: a loop of one's own around what `prepare` gives back."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import torch
from accelerate import Accelerator
from numpy.typing import NDArray
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from escala.execution.order import Order
from escala.execution.synchronise import synchroniser
from escala.peers.base import Edges, Floats, Peer, Task
from escala.peers.torch_parts import Ordered, device_of, optimizer_of


def fit(
    accelerator: Accelerator,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    loader: DataLoader[Any],
    validation: DataLoader[Any] | None,
    epochs: int,
    edges: Edges,
) -> nn.Module:
    """All epochs; the model as it was prepared."""
    # user code begins
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(epochs):
        edges.training_begins()
        loader.set_epoch(epoch)  # type: ignore[attr-defined]
        model.train()
        losses = []
        for images, labels in loader:
            optimizer.zero_grad()
            loss = cross_entropy(model(images), labels)
            accelerator.backward(loss)
            optimizer.step()
            losses.append(loss.detach())
        edges.training_ended(torch.stack(losses).tolist())
        if validation is not None:
            edges.validation_begins()
            edges.validated(predict(model, accelerator.prepare(validation)))
    # user code ends
    return model


def predict(model: nn.Module, loader: DataLoader[Any]) -> Floats:
    """The network's outputs."""
    # user code begins
    model.eval()
    with torch.no_grad():
        outputs = [model(images) for (images,) in loader]
    return torch.cat(outputs).cpu().numpy()
    # user code ends


class Accelerated(Peer):
    """The loop above, in one process."""

    def __init__(self, task: Task) -> None:
        self._task = task
        device = device_of(task)
        if device.type == "cuda":
            torch.cuda.set_device(device)
        # user code begins
        self._accelerator = Accelerator(cpu=device.type == "cpu")
        self._data = TensorDataset(torch.from_numpy(task.inputs), torch.from_numpy(task.targets))
        # user code ends
        self._wait = synchroniser([device])
        self._model = task.model

    def train(self, orders: Sequence[Order], edges: Edges) -> None:
        task = self._task
        model = deepcopy(task.model)
        # user code begins
        loader = DataLoader(self._data, batch_size=task.train.batch, sampler=Ordered(orders))
        validation = None if task.validation is None else self._loader(task.validation)
        optimizer = optimizer_of(task, model)
        # user code ends
        self._model = fit(self._accelerator, model, optimizer, loader, validation, len(orders), edges)

    def predict(self, inputs: NDArray[Any]) -> Floats:
        return predict(self._model, self._accelerator.prepare(self._loader(inputs)))

    def synchronise(self) -> None:
        self._wait()

    def _loader(self, inputs: NDArray[Any]) -> DataLoader[Any]:
        # user code begins
        return DataLoader(TensorDataset(torch.from_numpy(inputs)), batch_size=self._task.chunk)
        # user code ends
