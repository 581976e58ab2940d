"""Small convolutional network for 28x28 grey images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from escala.workloads import options
from escala.workloads.base import Workload, pixels


@dataclass(frozen=True)
class CnnSmall(Workload):
    """Two 3x3 convolutions (32, 64 channels), each with ReLU and 2x2 max-pooling, then 3136-128-10.

    The MNIST + CNN small pair of the six published pairs. Images [n, 28, 28] uint8 -> logits [n, 10]. 421,642
    parameters. 3136 = 64 x 7 x 7 fixes the padding at 1; the source gives dropout 0.2, placed here before the
    last layer; initial weights are PyTorch's
    defaults and pixels lie in -1..1.
    """

    dropout: float = 0.2
    data: ClassVar[tuple[str, ...]] = ("fashion-mnist", "mnist", "synthetic")

    def __post_init__(self) -> None:
        options.share(dropout=self.dropout)

    def model(self) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(32, 64, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(3136, 128),
            nn.ReLU(),
            nn.Dropout(self.dropout),
            nn.Linear(128, 10),
        )

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        return tuple(model.children())

    def tensor_plan(self) -> Mapping[str, str]:
        return {"7": "column", "10": "row"}

    def inputs(self, raw: Tensor, dtype: torch.dtype) -> Tensor:
        return pixels(raw, dtype)
