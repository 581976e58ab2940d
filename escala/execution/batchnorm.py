"""Running statistics of batch normalisation that several seats gathered, each from its own rows."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm


def combine_running_statistics(model: nn.Module, share: float, add_up: Callable[[Tensor], Tensor]) -> None:
    """Give every seat the statistics of all rows, so that all of them judge with one and the same network.

    `share` is this seat's part of the rows; shares of all seats add up to 1. `add_up` returns the sum over seats of a
    float64 tensor in host memory. The variance of all rows is the mean variance within seats plus that of their
    means. Does nothing, on all seats alike, where the model keeps no such statistics.
    """
    layers = [layer for layer in model.modules() if isinstance(layer, _BatchNorm) and layer.running_mean is not None]
    if not layers:
        return
    means = torch.cat([layer.running_mean.double().cpu() for layer in layers])  # type: ignore[union-attr]
    variances = torch.cat([layer.running_var.double().cpu() for layer in layers])  # type: ignore[union-attr]
    summed = add_up(torch.stack([share * means, share * (variances + means.square())]))
    means, variances = summed[0], summed[1] - summed[0].square()
    sizes = [layer.num_features for layer in layers]
    for layer, mean, variance in zip(layers, means.split(sizes), variances.split(sizes), strict=True):
        # Rounding may leave a variance of nothing a hair below it.
        layer.running_mean.copy_(mean)  # type: ignore[union-attr]
        layer.running_var.copy_(variance.clamp_min(0))  # type: ignore[union-attr]
