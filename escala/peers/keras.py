"""Keras on TensorFlow: `Model.fit` over rows in the order asked for, an epoch a call, and what it chooses to compile.

Several devices are driven by `MirroredStrategy`, which averages the means of its replicas: the same as the mean of
the batch where their shares are equal. On the CPU several devices are logical ones, as TensorFlow's own tests have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf
from numpy.typing import NDArray

from escala.execution.order import Order
from escala.peers import layers
from escala.peers.base import Edges, Floats, Peer, Task
from escala.terms.errors import Unfit
from escala.terms.experiment import TrainSpec


def compiled(model: keras.Model, train: TrainSpec) -> None:
    """Made ready to be fitted."""
    # user code begins
    model.compile(
        optimizer=keras.optimizers.SGD(train.lr, momentum=train.momentum),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    # user code ends


def fit(
    model: Recorded,
    data: tuple[NDArray[Any], NDArray[np.int64]],
    orders: Sequence[Order],
    batch: int,
    validation: NDArray[Any] | None,
    chunk: int,
    edges: Edges,
) -> None:
    """All epochs."""
    inputs, targets = data
    # user code begins
    for order in orders:
        edges.training_begins()
        model.fit(inputs[order], targets[order], batch_size=batch, shuffle=False, verbose=0)
        edges.training_ended(model.losses_of_epoch())
        if validation is not None:
            edges.validation_begins()
            edges.validated(model.predict(validation, batch_size=chunk, verbose=0))
    # user code ends


class Recorded(keras.Sequential):  # type: ignore[misc]
    """A network that keeps the loss of every step where it was computed, which Keras itself only averages."""

    def keep(self, steps: int) -> None:
        """Make room for an epoch of so many steps, in the scope of the model's strategy."""
        self.curve = tf.Variable(
            tf.zeros(steps),
            trainable=False,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    def compute_loss(self, *arguments: Any, **named: Any) -> Any:
        loss = super().compute_loss(*arguments, **named)
        if self.optimizer is not None:
            place = tf.cast(self.optimizer.iterations, tf.int32) % tf.shape(self.curve)[0]
            self.curve.assign(tf.tensor_scatter_nd_update(self.curve, [[place]], [loss]))
        return loss

    def losses_of_epoch(self) -> Floats:
        """The mean over the batch of each step of the last epoch."""
        found: Floats = self.curve.numpy()
        return found


class Keras(Peer):
    """The loop above, on one device or on several in one process."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._devices = _devices(task)
        self._strategy = tf.distribute.MirroredStrategy(self._devices) if len(self._devices) > 1 else None
        self._data = _channels_last(task.inputs), task.targets
        self._validation = None if task.validation is None else _channels_last(task.validation)
        keras.utils.set_random_seed(task.train.seed)
        # user code begins
        with self._strategy.scope() if self._strategy else tf.device(self._devices[0]):
            # user code ends
            self._model = _network(task)
            self._model.keep(-(-len(task.inputs) // task.train.batch))
            compiled(self._model, task.train)
            self._model.optimizer.build(self._model.trainable_variables)
        self._initial = self._model.get_weights()
        self._untouched = [variable.numpy() for variable in self._model.optimizer.variables]

    def train(self, orders: Sequence[Order], edges: Edges) -> None:
        self._model.set_weights(self._initial)
        for variable, value in zip(self._model.optimizer.variables, self._untouched, strict=True):
            variable.assign(value)
        train, chunk = self._task.train, self._task.chunk
        fit(self._model, self._data, orders, train.batch, self._validation, chunk, edges)

    def predict(self, inputs: NDArray[Any]) -> Floats:
        # user code begins
        outputs: Floats = self._model.predict(_channels_last(inputs), batch_size=self._task.chunk, verbose=0)
        # user code ends
        return outputs

    def synchronise(self) -> None:
        tf.test.experimental.sync_devices()

    def peak_memory(self) -> dict[str, int] | None:
        if self._task.devices[0] == "cpu":
            return None
        pairs = zip(self._task.devices, self._devices, strict=True)
        return {name: int(tf.config.experimental.get_memory_info(own)["peak"]) for name, own in pairs}


def _devices(task: Task) -> list[str]:
    """TensorFlow's names of the task's devices, made ready: float32 is float32, and memory is taken as needed."""
    tf.config.experimental.enable_tensor_float_32_execution(False)
    tf.config.threading.set_intra_op_parallelism_threads(task.threads)
    many = len(task.devices)
    if task.devices[0] == "cpu":
        tf.config.set_visible_devices([], "GPU")
        if many > 1:
            (cpu,) = tf.config.list_physical_devices("CPU")
            tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * many)
        return [f"CPU:{number}" for number in range(many)]
    cards = tf.config.list_physical_devices("GPU")
    chosen = [cards[number] for name in task.devices if (number := int(name.split(":")[1])) < len(cards)]
    if len(chosen) < many:
        names = ", ".join(task.devices)
        raise Unfit(f"TensorFlow sees {len(cards)} GPUs here, not {names}: pip install 'tensorflow[and-cuda]'")
    tf.config.set_visible_devices(chosen, "GPU")
    for card in chosen:
        tf.config.experimental.set_memory_growth(card, True)
    return [f"GPU:{number}" for number in range(many)]


def _channels_last(inputs: NDArray[Any]) -> NDArray[Any]:
    """Images [rows, height, width, channels]; TensorFlow convolves no others on a CPU."""
    return np.ascontiguousarray(inputs.transpose(0, 2, 3, 1)) if inputs.ndim == 4 else inputs


def _network(task: Task) -> Recorded:
    """The task's network with its weights."""
    kept: list[tuple[Any, list[NDArray[np.float32]]]] = []
    shape = _channels_last(task.inputs[:1]).shape[1:]
    found: list[Any] = [keras.Input(shape)]
    flattened: tuple[int, ...] = ()
    for layer in layers.translated(task.model):
        made, weights = _layer(layer, flattened)
        if isinstance(layer, layers.Flatten):
            flattened = tuple(keras.Sequential(found).output_shape[1:]) if len(found) > 1 else shape
        elif isinstance(layer, layers.Dense):
            flattened = ()
        found += made
        if weights:
            kept.append((made[-1], weights))
    model = Recorded(found)
    for own, weights in kept:
        own.set_weights(weights)
    return model


def _layer(layer: layers.Layer, flattened: tuple[int, ...]) -> tuple[list[Any], list[NDArray[np.float32]]]:
    """Keras's layers for one, and the weights of the last of them; `flattened` is the shape that was flattened."""
    match layer:
        case layers.Flatten():
            return [keras.layers.Flatten()], []
        case layers.Activation(function):
            return [keras.layers.Activation(function)], []
        case layers.Dropout(rate):
            return [keras.layers.Dropout(rate)], []
        case layers.Dense(weight, bias):
            own = keras.layers.Dense(len(weight), use_bias=bias is not None)
            return [own], [_as_flattened(weight, flattened).T, *([] if bias is None else [bias])]
        case layers.Convolution(weight, bias, stride, padding):
            before = [keras.layers.ZeroPadding2D(padding)] if any(padding) else []
            own = keras.layers.Conv2D(len(weight), weight.shape[2:], strides=stride, use_bias=bias is not None)
            return [*before, own], [weight.transpose(2, 3, 1, 0), *([] if bias is None else [bias])]
        case layers.MaxPool(window, stride):
            return [keras.layers.MaxPooling2D(window, stride)], []


def _as_flattened(weight: NDArray[np.float32], flattened: tuple[int, ...]) -> NDArray[np.float32]:
    """Columns that go channel by channel, in the order of [height, width, channels]."""
    if len(flattened) != 3:
        return weight
    height, width, channels = flattened
    return weight.reshape(-1, channels, height, width).transpose(0, 2, 3, 1).reshape(len(weight), -1)
