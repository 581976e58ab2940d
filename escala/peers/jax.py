"""JAX: rows on the device, one jitted function an epoch, in it a scan over the steps.

The rows stay on the device for all epochs, as `feed = "resident"` has them, and only the order goes there: so
JAX's users write a small training, and it is the fastest loop that is known without kernels of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from numpy.typing import NDArray

from escala.execution.order import Order
from escala.peers import layers
from escala.peers.base import Edges, Floats, Peer, Task
from escala.terms.errors import Unfit
from escala.terms.experiment import TrainSpec

Array = Any
Network = Callable[[Any, Array, Array], Array]


# user code begins
def mean_loss(network: Network, weights: Any, images: Array, labels: Array, key: Array) -> Array:
    scores = jax.nn.log_softmax(network(weights, images, key))
    return -jnp.take_along_axis(scores, labels[:, None], axis=1).mean()


def sgd(train: TrainSpec, weights: Any, velocity: Any, gradient: Any) -> tuple[Any, Any]:
    if train.weight_decay:
        gradient = jax.tree.map(lambda g, w: g + train.weight_decay * w, gradient, weights)
    if train.momentum:
        velocity = jax.tree.map(lambda v, g: train.momentum * v + g, velocity, gradient)
        gradient = velocity
    return jax.tree.map(lambda w, g: w - train.lr * g, weights, gradient), velocity


@partial(jax.jit, static_argnums=(0, 1), donate_argnums=(2,))
def epoch(
    network: Network, train: TrainSpec, state: Any, inputs: Array, targets: Array, order: Array, key: Array
) -> Any:
    def step(state: Any, own: Any) -> Any:
        rows, key = own
        loss, gradient = jax.value_and_grad(mean_loss, 1)(network, state[0], inputs[rows], targets[rows], key)
        weights, velocity = state
        return sgd(train, weights, velocity, gradient), loss

    whole, rest = divmod(len(order), train.batch)
    keys = jax.random.split(key, whole + 1)
    rows = order[: len(order) - rest].reshape(whole, train.batch)
    state, losses = lax.scan(step, state, (rows, keys[:-1]))
    if rest:
        state, last = step(state, (order[-rest:], keys[-1]))
        losses = jnp.append(losses, last)
    return state, losses


@partial(jax.jit, static_argnums=0)
def predict(network: Network, weights: Any, images: Array) -> Array:
    return network(weights, images, None)


# user code ends


class Jax(Peer):
    """The functions above, on one device."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._device = _device(task.devices[0])
        found = layers.translated(task.model)
        self._network = partial(_outputs, found)
        self._initial = [_weights(layer) for layer in found]
        # user code begins
        self._inputs, self._targets = self._put(task.inputs), self._put(task.targets.astype(np.int32))
        self._validation = None if task.validation is None else self._put(task.validation)
        # user code ends
        self._key = self._put(jax.random.key(task.train.seed))
        self._state: Any = None

    def train(self, orders: Sequence[Order], edges: Edges) -> None:
        task = self._task
        # Copies: what an epoch is given is its own to overwrite.
        weights = self._put([[array.copy() for array in arrays] for arrays in self._initial])
        # user code begins
        velocity = jax.tree.map(jnp.zeros_like, weights) if task.train.momentum else []
        self._state = weights, velocity
        for number, order in enumerate(orders):
            edges.training_begins()
            rows = self._put(order.astype(np.int32))
            key = jax.random.fold_in(self._key, number)
            data = self._inputs, self._targets
            self._state, losses = epoch(self._network, task.train, self._state, *data, rows, key)
            edges.training_ended(np.asarray(losses))
            if self._validation is not None:
                edges.validation_begins()
                edges.validated(self._predicted(self._validation))
        # user code ends

    def predict(self, inputs: NDArray[Any]) -> Floats:
        return self._predicted(self._put(inputs))

    def synchronise(self) -> None:
        jax.block_until_ready(self._state)

    def peak_memory(self) -> dict[str, int] | None:
        known = self._device.memory_stats() or {}
        return None if self._device.platform == "cpu" else {self._task.devices[0]: int(known["peak_bytes_in_use"])}

    def _put(self, value: Any) -> Any:
        return jax.device_put(value, self._device)

    def _predicted(self, inputs: Array) -> Floats:
        # user code begins
        chunk = self._task.chunk
        parts = (inputs[start : start + chunk] for start in range(0, len(inputs), chunk))
        return np.concatenate([predict(self._network, self._state[0], part) for part in parts])
        # user code ends


def _device(name: str) -> Any:
    """JAX's device, with products in full float32."""
    kind, _, number = name.partition(":")
    jax.config.update("jax_platforms", kind)
    jax.config.update("jax_default_matmul_precision", "highest")
    try:
        return jax.devices(kind)[int(number or 0)]
    except (RuntimeError, IndexError) as error:
        raise Unfit(f"JAX sees no {name} here: pip install 'jax[cuda13]'") from error


def _weights(layer: layers.Layer) -> list[NDArray[np.float32]]:
    if not isinstance(layer, layers.Dense | layers.Convolution):
        return []
    return [layer.weight] if layer.bias is None else [layer.weight, layer.bias]


def _outputs(network: Sequence[layers.Layer], weights: Any, values: Array, key: Array | None) -> Array:
    """Logits; `weights` by layer, `key` for the random numbers of dropout, None: no dropout."""
    for number, (layer, own) in enumerate(zip(network, weights, strict=True)):
        match layer:
            case layers.Flatten():
                values = values.reshape(len(values), -1)
            case layers.Activation("relu"):
                values = jax.nn.relu(values)
            case layers.Activation():
                values = jax.nn.sigmoid(values)
            case layers.Dropout(rate) if key is not None and rate:
                kept = jax.random.bernoulli(jax.random.fold_in(key, number), 1 - rate, values.shape)
                values = jnp.where(kept, values / (1 - rate), 0)
            case layers.Dense():
                values = values @ own[0].T
            case layers.Convolution(_, _, stride, padding):
                around = [(one, one) for one in padding]
                values = lax.conv_general_dilated(
                    values, own[0], stride, around, dimension_numbers=("NCHW", "OIHW", "NCHW")
                )
            case layers.MaxPool(window, stride):
                values = lax.reduce_window(values, -jnp.inf, lax.max, (1, 1, *window), (1, 1, *stride), "VALID")
        if len(own) > 1:
            values = values + own[1].reshape(-1, *[1] * (values.ndim - 2))
    return values
