"""Dropout whose masks belong to the rows of the global batch, whoever holds them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from escala.execution.draws import at_step, kept, key_of
from escala.execution.piece import Piece
from escala.terms.errors import EscalaError

BY_SEAT = 'set execution.random = "seat"'
"""The way out, where something cannot be drawn by row."""


class Draws:
    """What one layer draws: a function of seed, its name, the optimiser step, the row, and its use in the pass."""

    def __init__(self, seed: int, name: str, piece: Piece) -> None:
        self._seed, self._name, self._piece = seed, name, piece
        self._number = self._use = 0

    def kept(self, shape: tuple[int, ...], dropped: float, device: torch.device) -> Tensor:
        """bool of `shape`, whose first dimension is rows. Raises MODEL-RANDOM where it is something else."""
        piece = self._piece
        # A layer may be used several times in one pass, and drops others each time.
        self._use = self._use + 1 if piece.number == self._number else 0
        self._number = piece.number
        if piece.rows and shape[0] != piece.rows:
            raise EscalaError(
                "MODEL-RANDOM",
                self._name or "the model",
                f"drops parts of {shape[0]} rows where {piece.rows} pass, so they cannot be drawn by row",
                expected="rows as the first dimension",
                next_step=BY_SEAT,
            )
        key = at_step(key_of(self._seed, self._name, self._use), piece.at)
        return kept(key, piece.start, shape[0], math.prod(shape[1:]), dropped, device).reshape(shape)


class RowDropout(nn.Module):
    """torch's Dropout, or, with `channels`, its Dropout1d, 2d and 3d, with masks from `draws`.

    [rows, ...] -> the same shape; of [rows, channels, ...] whole channels. In evaluation it leaves all as it is.
    """

    def __init__(self, p: float, draws: Draws, *, channels: bool = False) -> None:
        super().__init__()
        self.p = p
        self._draws = draws
        self._channels = channels

    def forward(self, inputs: Tensor) -> Tensor:
        """[rows, ...] -> the same shape."""
        if not self.training:
            return inputs
        if self.p >= 1:
            return inputs * 0
        shape = tuple(inputs.shape)
        if self._channels:
            shape = (*shape[:2], *(1 for _ in shape[2:]))
        keep = self._draws.kept(shape, self.p, inputs.device)
        return inputs * keep.to(inputs.dtype).div_(1 - self.p)

    def extra_repr(self) -> str:
        """As torch shows its own."""
        return f"p={self.p}"
