"""PyTorch Lightning: a module of steps, a loader over rows in memory, and its Trainer for all epochs.

One `fit` goes over all epochs with validation inside, as Lightning's users have it. Progress bar, logger, checkpoints
and the check before the first epoch are off, since they are no part of training: what is left is its fastest loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from escala.execution.order import Order
from escala.execution.synchronise import synchroniser
from escala.peers.base import Edges, Floats, Peer, Task
from escala.peers.torch_parts import Ordered, device_of, optimizer_of

MakeOptimizer = Callable[[nn.Module], torch.optim.Optimizer]


# user code begins
class Module(LightningModule):  # type: ignore[misc]
    def __init__(self, model: nn.Module, make_optimizer: MakeOptimizer) -> None:
        super().__init__()
        self.model, self.make_optimizer = model, make_optimizer
        self.losses: list[Tensor] = []
        self.outputs: list[Tensor] = []

    def training_step(self, batch: Sequence[Tensor], _: int) -> Tensor:
        images, labels = batch
        loss = cross_entropy(self.model(images), labels)
        self.losses.append(loss.detach())
        return loss

    def validation_step(self, batch: Sequence[Tensor], _: int) -> None:
        self.outputs.append(self.model(batch[0]))

    def predict_step(self, batch: Sequence[Tensor], _: int) -> Tensor:
        return self.model(batch[0])  # type: ignore[no-any-return]

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.make_optimizer(self.model)


# user code ends


def trainer_for(device: torch.device, epochs: int, callback: Callback) -> Trainer:
    """A Trainer that trains and does nothing else."""
    # user code begins
    return Trainer(
        accelerator="cpu" if device.type == "cpu" else "gpu",
        devices=1 if device.type == "cpu" else [device.index],
        max_epochs=epochs,
        callbacks=[callback],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    # user code ends


class Lightning(Peer):
    """The Trainer above."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._device = device_of(task)
        # user code begins
        self._data = TensorDataset(torch.from_numpy(task.inputs), torch.from_numpy(task.targets))
        # user code ends
        self._wait = synchroniser([self._device])
        self._module = Module(task.model, lambda model: optimizer_of(task, model))
        self._trainer: Trainer = None

    def train(self, orders: Sequence[Order], edges: Edges) -> None:
        task = self._task
        self._module = Module(deepcopy(task.model), lambda model: optimizer_of(task, model))
        self._trainer = trainer_for(self._device, len(orders), _Edge(edges))
        # user code begins
        loader = DataLoader(self._data, batch_size=task.train.batch, sampler=Ordered(orders))
        validation = None if task.validation is None else self._loader(task.validation)
        self._trainer.fit(self._module, loader, validation)
        # user code ends

    def predict(self, inputs: NDArray[Any]) -> Floats:
        # user code begins
        outputs: list[Tensor] = self._trainer.predict(self._module, self._loader(inputs))
        return torch.cat(outputs).cpu().numpy()
        # user code ends

    def synchronise(self) -> None:
        self._wait()

    def _loader(self, inputs: NDArray[Any]) -> DataLoader[Any]:
        # user code begins
        return DataLoader(TensorDataset(torch.from_numpy(inputs)), batch_size=self._task.chunk)
        # user code ends


class _Edge(Callback):  # type: ignore[misc]
    """Calls escala's clock. Lightning validates within an epoch, so training ends where validation begins."""

    def __init__(self, edges: Edges) -> None:
        self._edges = edges
        self._training = False

    def on_train_epoch_start(self, _: Trainer, module: Module) -> None:
        module.losses.clear()
        self._training = True
        self._edges.training_begins()

    def on_validation_start(self, _: Trainer, module: Module) -> None:
        self._end_training(module)
        module.outputs.clear()
        self._edges.validation_begins()

    def on_validation_end(self, _: Trainer, module: Module) -> None:
        self._edges.validated(torch.cat(module.outputs).cpu().numpy())

    def on_train_epoch_end(self, _: Trainer, module: Module) -> None:
        self._end_training(module)

    def _end_training(self, module: Module) -> None:
        if self._training:
            self._training = False
            self._edges.training_ended(torch.stack(module.losses).tolist())
