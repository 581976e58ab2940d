"""Convolutional network with batch normalisation for 32x32 colour images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from escala.workloads import options
from escala.workloads.base import Workload, pixels


@dataclass(frozen=True)
class CnnMedium(Workload):
    """Three 3x3 convolutions (64, 128, 256 channels), each batch-normalised, ReLU, 2x2 max-pooled; 4096-512-10.

    The CIFAR-10 + CNN medium pair of the six published pairs. Images [n, channels, 32, 32] uint8, or floats in
    0..1 -> logits [n, classes]. 2,474,506 parameters with 3 channels and 10 classes. 4096 = 256 x 4 x 4 fixes the
    padding at 1. The source gives layers and dropout 0.3, placed here before the last layer, as in `cnn-small`; it
    leaves open the bias of the convolutions (each has one here, although batch normalisation takes it away again),
    the activation between the last two layers (ReLU here) and the initial weights (PyTorch's defaults).
    """

    dropout: float = 0.3
    classes: int = 10
    channels: int = 3
    data: ClassVar[tuple[str, ...]] = ("cifar10", "synthetic-cifar10")

    def __post_init__(self) -> None:
        options.share(dropout=self.dropout)
        options.at_least(2, classes=self.classes)
        options.at_least(1, channels=self.channels)

    def model(self) -> nn.Module:
        return nn.Sequential(
            *_stage(self.channels, 64),
            *_stage(64, 128),
            *_stage(128, 256),
            nn.Flatten(),
            nn.Linear(4096, 512),
            nn.ReLU(),
            nn.Dropout(self.dropout),
            nn.Linear(512, self.classes),
        )

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        return tuple(model.children())

    def tensor_plan(self) -> Mapping[str, str]:
        return {"13": "column", "16": "row"}

    def inputs(self, raw: Tensor, dtype: torch.dtype) -> Tensor:
        return pixels(raw, dtype)


def _stage(before: int, after: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU(), nn.MaxPool2d(2)
