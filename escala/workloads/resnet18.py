"""Residual network of 18 layers for 32x32 colour images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from escala.workloads import options, residual
from escala.workloads.base import Workload, pixels


@dataclass(frozen=True)
class Resnet18(Workload):
    """A 3x3 stem of 64 channels, stages of 64, 128, 256, 512 with 2 residual blocks each, mean, 512-100.

    The CIFAR-100 + CNN large pair of the six published pairs. Images [n, channels, 32, 32] uint8, or floats in
    0..1, other sizes too -> logits [n, classes]. 11,220,132 parameters with 3 channels and 100 classes; the source
    says "20M", which its own layers do not give. It leaves open the blocks' inside (two 3x3 convolutions here, 1x1
    on the shortcut where shapes differ), biases (none beside batch normalisation) and the initial weights (He's
    normal distribution for convolutions). Every wide layer is a convolution, so nothing is split across devices.
    """

    classes: int = 100
    channels: int = 3
    data: ClassVar[tuple[str, ...]] = ("cifar100", "synthetic-cifar100")
    evaluation_rows: ClassVar[int] = 250

    def __post_init__(self) -> None:
        options.at_least(2, classes=self.classes)
        options.at_least(1, channels=self.channels)

    def model(self) -> nn.Module:
        stem = (*residual.normalised(self.channels, 64, 3), nn.ReLU(inplace=True))
        network = nn.Sequential(*stem, *residual.stages((2, 2, 2, 2)), *residual.head(self.classes))
        return residual.initialised(network)

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        return tuple(model.children())

    def inputs(self, raw: Tensor, dtype: torch.dtype) -> Tensor:
        return pixels(raw, dtype)
