"""Batch normalisation when several seats share a batch: by whose rows, and whose running statistics."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from escala.execution.batchnorm_ghost import GhostNorm
from escala.execution.batchnorm_layer import Layer
from escala.execution.batchnorm_sync import SyncNorm
from escala.execution.piece import Piece, exchange
from escala.terms.errors import EscalaError

_KNOWN = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


def arrange(model: nn.Module, choice: str, unit: int, share: int) -> tuple[nn.Module, Piece | None]:
    """Put the layers that `choice` asks for in the place of torch's, before the strategy's wrapper goes on.

    `local` leaves all as it is, and so does `sync` where no other seat exists: torch's own layer takes the statistics
    of the rows that pass it. `ghost:N` comes with its N as `unit`; `share` is the number of this seat's share of the
    rows. Names of parameters and buffers stay. Also returns
    what must be told of each forward pass in training, or None where no layer asks. Raises `MODEL-NORM` for a layer
    whose own way to normalise would be lost.
    """
    if choice == "local" or (choice == "sync" and not _have_peers()):
        return model, None
    piece = Piece()

    def make(name: str, layer: nn.Module) -> Layer | None:
        if not isinstance(layer, _BatchNorm):
            return None
        if type(layer) not in _KNOWN:
            raise EscalaError(
                "MODEL-NORM",
                name or "the model",
                f"execution.batchnorm = {choice} cannot stand in for a {type(layer).__name__}",
                expected="torch's own BatchNorm1d, 2d or 3d",
                next_step='set execution.batchnorm = "local"',
            )
        return SyncNorm(layer, piece) if choice == "sync" else GhostNorm(layer, piece, unit, holds_start=share == 0)

    model, changed = exchange(model, make)
    return model, piece if changed else None


def combine_running_statistics(
    model: nn.Module, share: float, add_up: Callable[[Tensor], Tensor], partners: int = 1
) -> None:
    """Give every seat the statistics of all rows, so that all of them judge with one and the same network.

    `share` is this seat's part of the rows; shares of all seats add up to 1. `add_up` returns the sum over seats of a
    float64 tensor in host memory. The variance of all rows is the mean variance within seats plus that of their
    means; ghosts gathered their parts of one sum. Does nothing, on all seats alike, where the model keeps no such
    statistics, or where every seat has the same. `partners` seats, this one included, saw the same rows.
    """
    _combine_local(model, share, add_up)
    _combine_ghosts(model, add_up, partners)


def _combine_local(model: nn.Module, share: float, add_up: Callable[[Tensor], Tensor]) -> None:
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


def _combine_ghosts(model: nn.Module, add_up: Callable[[Tensor], Tensor], partners: int) -> None:
    layers = [layer for layer in model.modules() if isinstance(layer, GhostNorm) and not layer.settled]
    if not layers:
        return
    # All seats have made the same steps, so they are unsettled together.
    summed = add_up(torch.cat([layer.part().cpu().double() for layer in layers], dim=1) / partners)
    for layer, (mean, variance) in zip(
        layers, summed.split([layer.num_features for layer in layers], dim=1), strict=True
    ):
        layer.settle(mean, variance)


def _have_peers() -> bool:
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
