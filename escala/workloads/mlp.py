"""Multilayer perceptron for 28x28 grey images."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from escala.workloads import options
from escala.workloads.base import Workload, pixels

_ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid}


@dataclass(frozen=True)
class Mlp(Workload):
    """784-512-512-10 with ReLU and dropout: the MNIST + MLP pair of the six published pairs.

    `hidden` are the sizes between 784 and 10, `activation` is `relu` or `sigmoid`; dropout follows each of them.

    Images [n, 28, 28] uint8 -> logits [n, 10]. 669,706 parameters. The source gives the layers, dropout 0.2
    and batch 64; initial weights are PyTorch's
    defaults and pixels lie in -1..1.
    """

    dropout: float = 0.2
    hidden: tuple[int, ...] = (512, 512)
    activation: str = "relu"
    data: ClassVar[tuple[str, ...]] = ("fashion-mnist", "mnist", "synthetic")

    def __post_init__(self) -> None:
        options.share(dropout=self.dropout)
        options.sizes(hidden=self.hidden)
        options.one_of(tuple(_ACTIVATIONS), activation=self.activation)

    def model(self) -> nn.Module:
        layers: list[nn.Module] = [nn.Flatten()]
        for before, width in itertools.pairwise((784, *self.hidden)):
            layers += [nn.Linear(before, width), _ACTIVATIONS[self.activation](), nn.Dropout(self.dropout)]
        return nn.Sequential(*layers, nn.Linear(self.hidden[-1], 10))

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        return tuple(model.children())

    def tensor_plan(self) -> Mapping[str, str]:
        # Flatten, then three layers for each size; a column and a row layer make a pair, and a last one is whole.
        names = [str(1 + 3 * number) for number in range(len(self.hidden) + 1)]
        pairs = zip(names[::2], names[1::2], strict=False)
        return {name: kind for pair in pairs for name, kind in zip(pair, ("column", "row"), strict=True)}

    def inputs(self, raw: Tensor, dtype: torch.dtype) -> Tensor:
        return pixels(raw, dtype)
