"""Multilayer perceptron for 28x28 grey images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from escala.workloads import options
from escala.workloads.base import Workload, pixels


@dataclass(frozen=True)
class Mlp(Workload):
    """784-512-512-10 with ReLU and dropout: the MNIST + MLP pair of the six published pairs.

    Images [n, 28, 28] uint8 -> logits [n, 10]. 669,706 parameters. The source gives the layers, dropout 0.2
    and batch 64; initial weights are PyTorch's
    defaults and pixels lie in -1..1.
    """

    dropout: float = 0.2
    data: ClassVar[tuple[str, ...]] = ("fashion-mnist", "mnist", "synthetic")

    def __post_init__(self) -> None:
        options.share(dropout=self.dropout)

    def model(self) -> nn.Module:
        return nn.Sequential(
            nn.Flatten(),
            nn.Linear(784, 512),
            nn.ReLU(),
            nn.Dropout(self.dropout),
            nn.Linear(512, 512),
            nn.ReLU(),
            nn.Dropout(self.dropout),
            nn.Linear(512, 10),
        )

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        return tuple(model.children())

    def tensor_plan(self) -> Mapping[str, str]:
        return {"1": "column", "4": "row"}

    def inputs(self, raw: Tensor, dtype: torch.dtype) -> Tensor:
        return pixels(raw, dtype)
