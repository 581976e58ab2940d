"""A network as plain layers that can be built anew in another framework."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from escala.peers import PEERS
from escala.terms.errors import Unfit
from escala.workloads.base import Workload

Weights = NDArray[np.float32]
_TAKEN = "Flatten, Linear, ReLU, Sigmoid, Dropout, Conv2d, MaxPool2d"


@dataclass(frozen=True)
class Flatten:
    """[rows, ...] -> [rows, features]; of images channel by channel."""


@dataclass(frozen=True)
class Activation:
    """An elementwise function."""

    function: Literal["relu", "sigmoid"]


@dataclass(frozen=True)
class Dropout:
    """`rate` of the values are zeroed in training, and the others scaled up."""

    rate: float


@dataclass(frozen=True)
class Dense:
    """`weight` [outputs, inputs], `bias` [outputs] or None."""

    weight: Weights
    bias: Weights | None


@dataclass(frozen=True)
class Convolution:
    """`weight` [outputs, inputs, height, width]; stride and padding (zeros, on both sides) of height and width."""

    weight: Weights
    bias: Weights | None
    stride: tuple[int, int]
    padding: tuple[int, int]


@dataclass(frozen=True)
class MaxPool:
    """The largest of each window; height and width of windows and of the strides between them."""

    window: tuple[int, int]
    stride: tuple[int, int]


Layer = Flatten | Activation | Dropout | Dense | Convolution | MaxPool


def peers_unfit(work: Workload, model: nn.Module) -> dict[str, str]:
    """Why peers cannot train this network, by peer; those that can are left out."""
    found = {
        name: _work_unfit(work) or (_network_unfit(model) if kind.translated else "") for name, kind in PEERS.items()
    }
    return {name: f"the peer {name} cannot train it: {reason}" for name, reason in found.items() if reason}


def _work_unfit(work: Workload) -> str:
    kind = type(work)
    if kind.loss is not Workload.loss or kind.count is not Workload.count:
        return (
            "peers train with the mean cross-entropy of the rows of a batch, and this workload has a loss of its own"
        )
    if kind.lengths is not Workload.lengths:
        return "peers know one order of rows, and this workload makes batches of rows of like lengths"
    return ""


def _network_unfit(model: nn.Module) -> str:
    try:
        translated(model)
    except Unfit as reason:
        return str(reason)
    return ""


def translated(model: nn.Module) -> tuple[Layer, ...]:
    """The layers of an `nn.Sequential`, sequences within it included, with copies of their weights.

    Raises Unfit naming the first layer that has no counterpart.
    """
    if type(model) is not nn.Sequential:
        raise Unfit(
            f"its network is a {type(model).__name__}; what can be translated is an nn.Sequential of {_TAKEN}"
        )
    found = list(_flat(model, ""))
    with_weights = [layer for _, layer in found if next(layer.parameters(), None) is not None]
    if len(set(map(id, with_weights))) < len(with_weights):
        raise Unfit("its network uses a layer twice, whose weights would become two")
    return tuple(_layer(name, layer) for name, layer in found)


def _flat(model: nn.Sequential, prefix: str) -> Iterator[tuple[str, nn.Module]]:
    for number, layer in enumerate(model):
        if type(layer) is nn.Sequential:
            yield from _flat(layer, f"{prefix}{number}.")
        else:
            yield f"{prefix}{number}", layer


def _layer(name: str, layer: nn.Module) -> Layer:
    if any(not parameter.requires_grad or parameter.dtype is not torch.float32 for parameter in layer.parameters()):
        raise _refused(name, layer, "whose weights are frozen or not in float32")
    match layer:
        case nn.Flatten() if type(layer) is nn.Flatten and (layer.start_dim, layer.end_dim) == (1, -1):
            return Flatten()
        case nn.ReLU() if type(layer) is nn.ReLU:
            return Activation("relu")
        case nn.Sigmoid() if type(layer) is nn.Sigmoid:
            return Activation("sigmoid")
        case nn.Dropout() if type(layer) is nn.Dropout:
            return Dropout(layer.p)
        case nn.Linear() if type(layer) is nn.Linear:
            return Dense(_array(layer.weight), _array(layer.bias) if layer.bias is not None else None)
        case nn.Conv2d() if type(layer) is nn.Conv2d:
            return _convolution(name, layer)
        case nn.MaxPool2d() if type(layer) is nn.MaxPool2d:
            return _pool(name, layer)
    raise _refused(name, layer, f"which has no counterpart; there is one for {_TAKEN}")


def _convolution(name: str, layer: nn.Conv2d) -> Convolution:
    if layer.groups != 1 or set(layer.dilation) != {1} or isinstance(layer.padding, str):
        raise _refused(name, layer, "with groups, dilation or padding by name")
    if layer.padding_mode != "zeros":
        raise _refused(name, layer, f"padded with {layer.padding_mode}")
    bias = _array(layer.bias) if layer.bias is not None else None
    return Convolution(_array(layer.weight), bias, _pair(layer.stride), _pair(layer.padding))


def _pool(name: str, layer: nn.MaxPool2d) -> MaxPool:
    if _pair(layer.padding) != (0, 0) or _pair(layer.dilation) != (1, 1) or layer.ceil_mode or layer.return_indices:
        raise _refused(name, layer, "with padding, dilation, ceil_mode or indices")
    return MaxPool(_pair(layer.kernel_size), _pair(layer.stride))


def _pair(value: Any) -> tuple[int, int]:
    height, width = value if isinstance(value, tuple) else (value, value)
    return int(height), int(width)


def _array(parameter: torch.Tensor) -> Weights:
    return parameter.detach().cpu().numpy().copy()


def _refused(name: str, layer: nn.Module, why: str) -> Unfit:
    return Unfit(f"its layer {name} is a {type(layer).__name__}, {why}")
