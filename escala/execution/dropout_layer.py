"""Dropout whose masks belong to the rows of the global batch, whoever holds them."""

from __future__ import annotations

import math
from typing import Protocol

import torch
from torch import Tensor, nn

from escala.execution.draws import at_step, kept, key_of
from escala.execution.piece import Piece
from escala.terms.errors import EscalaError

BY_SEAT = 'set execution.random = "seat"'
"""The way out, where something cannot be drawn by row."""


class Part(Protocol):
    """Which part of a whole a seat holds, for each use of a layer in a pass (from 0)."""

    def whole(self, use: int, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of what all seats hold together, of which this seat holds `shape`."""

    def own(self, use: int, drawn: Tensor) -> Tensor:
        """This seat's part of what was drawn for the whole."""


class Draws:
    """What one layer draws: a function of seed, its name, the optimiser step, the row, and its use in the pass."""

    def __init__(self, seed: int, name: str, piece: Piece) -> None:
        self._seed, self._name, self._piece = seed, name, piece
        self._number = self._use = 0
        self.part: Part | None = None
        """Where seats hold parts of what this layer drops from: which; None: this seat holds all of it."""

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
        part = self.part
        whole = shape if part is None else part.whole(self._use, shape)
        drawn = kept(key, piece.start, whole[0], math.prod(whole[1:]), dropped, device).reshape(whole)
        return drawn if part is None else part.own(self._use, drawn)

    def mark(self) -> tuple[int, int]:
        """Where in its passes it is, for `go_to`."""
        return self._number, self._use

    def go_to(self, mark: tuple[int, int]) -> None:
        """Be again as at `mark`: what is drawn from here on is what was drawn from there on."""
        self._number, self._use = mark


class RowDropout(nn.Module):
    """torch's Dropout, or, with `channels`, its Dropout1d, 2d and 3d, with masks from `draws`.

    [rows, ...] -> the same shape; of [rows, channels, ...] whole channels. In evaluation it leaves all as it is.
    """

    def __init__(self, p: float, draws: Draws, *, channels: bool = False) -> None:
        super().__init__()
        self.p = p
        self.draws = draws
        self._channels = channels

    def forward(self, inputs: Tensor) -> Tensor:
        """[rows, ...] -> the same shape."""
        if not self.training:
            return inputs
        if self.p >= 1:
            return inputs * 0
        keep = self.draws.kept(self.mask_shape(inputs), self.p, inputs.device)
        return inputs * keep.to(inputs.dtype).div_(1 - self.p)

    def mask_shape(self, inputs: Tensor) -> tuple[int, ...]:
        """What is drawn for these inputs: of [rows, channels, ...] one for each channel, where whole ones go."""
        shape = tuple(inputs.shape)
        return (*shape[:2], *(1 for _ in shape[2:])) if self._channels else shape

    def extra_repr(self) -> str:
        """As torch shows its own."""
        return f"p={self.p}"
