"""Other people's loops on the MLP, for `benchmarks/gpu.py`; each needs its own package."""

from __future__ import annotations

import importlib
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from gpu_by_hand import Run
from gpu_works import Work
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset


def lightning(work: Work, device: torch.device) -> Run:
    """Lightning's default loop: what `Trainer.fit` takes for so many steps, without its start and end."""
    package: Any = importlib.import_module("lightning.pytorch")
    split, made = work.split(), work.made()
    inputs, targets = made.example(torch.from_numpy(split.inputs), torch.from_numpy(split.targets), torch.float32)
    loader = DataLoader(TensorDataset(inputs, targets), work.batch, shuffle=True, drop_last=True)
    network = made.model()

    class Module(package.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.network = network
            self.edges = list[float]()

        def training_step(self, batch: Any, _: int) -> torch.Tensor:
            return cross_entropy(self.network(batch[0]), batch[1])

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=work.lr)

        def on_train_start(self) -> None:
            self._note()

        def on_train_end(self) -> None:
            self._note()

        def _note(self) -> None:
            if device.type == "cuda":
                torch.cuda.synchronize()
            self.edges.append(time.perf_counter())

    def run(steps: int) -> float:
        module = Module()
        where = {"accelerator": "gpu", "devices": 1} if device.type == "cuda" else {"accelerator": "cpu"}
        quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
        package.Trainer(max_steps=steps, max_epochs=-1, enable_model_summary=False, **quiet, **where).fit(
            module, loader
        )
        began, ended = module.edges
        return ended - began

    return run


def jax_scan(work: Work, device: torch.device) -> Run:
    """JAX: steps of a whole epoch in one jitted scan, in whatever format JAX multiplies by default."""
    del device
    jax: Any = importlib.import_module("jax")
    jnp: Any = jax.numpy
    split = work.split()
    images = jnp.asarray(split.inputs.reshape(work.rows, -1).astype(np.float32) / 127.5 - 1)
    labels = jnp.asarray(split.targets)
    drawn = np.random.default_rng(2)
    sizes = (images.shape[1], 512, 512, work.kinds)
    weights = [
        (jnp.asarray(drawn.normal(0, before**-0.5, (before, after)).astype(np.float32)), jnp.zeros(after))
        for before, after in itertools.pairwise(sizes)
    ]

    def loss(weights: Any, rows: Any, wanted: Any) -> Any:
        for weight, bias in weights[:-1]:
            rows = jax.nn.relu(rows @ weight + bias)
        logits = rows @ weights[-1][0] + weights[-1][1]
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), wanted[:, None], 1).mean()

    def step(weights: Any, places: Any) -> tuple[Any, None]:
        slopes = jax.grad(loss)(weights, images[places], labels[places])
        return jax.tree.map(lambda value, slope: value - work.lr * slope, weights, slopes), None

    per_epoch = work.rows // work.batch
    epoch: Callable[..., Any] = jax.jit(
        lambda weights, key: jax.lax.scan(
            step,
            weights,
            jax.random.permutation(key, work.rows)[: per_epoch * work.batch].reshape(per_epoch, work.batch),
        )[0]
    )
    key = jax.random.key(0)
    jax.block_until_ready(epoch(weights, key))

    def run(steps: int) -> float:
        nonlocal weights
        epochs = -(-steps // per_epoch)
        began = time.perf_counter()
        for _ in range(epochs):
            weights = epoch(weights, key)
        jax.block_until_ready(weights)
        return (time.perf_counter() - began) * steps / (epochs * per_epoch)

    return run
