"""Residual network of 34 layers for images of any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from escala.workloads import options, residual
from escala.workloads.base import Workload, pixels


@dataclass(frozen=True)
class Resnet34(Workload):
    """A 7x7 stem of stride 2, 3x3 max-pooling of stride 2, stages of 3, 4, 6, 3 residual blocks, mean, 512-9.

    The published network for fish silhouettes. Images [n, h, w] or [n, channels, h, w] of any size, uint8 or floats
    in 0..1 -> logits [n, classes]. 21,283,017 parameters with 1 channel and 9 classes. The source names ResNet-34,
    so the rest is the paper's (He et al. 2015, table 1, shortcuts of option B); it leaves open the initial weights
    (He's normal distribution for convolutions; nothing pretrained). Every wide layer is a convolution, so nothing
    is split across devices.
    """

    classes: int = 9
    channels: int = 1
    data: ClassVar[tuple[str, ...]] = ("synthetic-fish",)
    evaluation_rows: ClassVar[int] = 100

    def __post_init__(self) -> None:
        options.at_least(2, classes=self.classes)
        options.at_least(1, channels=self.channels)

    def model(self) -> nn.Module:
        stem = (
            *residual.normalised(self.channels, 64, 7, stride=2),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(3, stride=2, padding=1),
        )
        network = nn.Sequential(*stem, *residual.stages((3, 4, 6, 3)), *residual.head(self.classes))
        return residual.initialised(network)

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        return tuple(model.children())

    def inputs(self, raw: Tensor, dtype: torch.dtype) -> Tensor:
        return pixels(raw, dtype)
