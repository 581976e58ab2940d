"""Batch normalisation over virtual batches of a fixed size (Hoffer, Hubara, Soudry 2017, arXiv:1705.08741)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from escala.execution.batchnorm_layer import Layer
from escala.execution.blocks import blocks, sizes
from escala.execution.piece import Piece


class GhostNorm(Layer):
    """Each `unit` consecutive rows of the GLOBAL batch are normalised by themselves, whoever holds them.

    The last ghost takes the rows that are left, and a lone row joins the ghost before it (`execution.blocks`), so
    what is normalised together depends on the batch alone. Every pass must hold whole ghosts. A batch of a single
    row with one value a channel has no variance: ValueError, as in torch, on any number of seats.

    The running statistics move once an optimiser step, towards the mean over its ghosts, weighed by rows, of their
    means and unbiased variances. Each seat gathers its own part of that sum, which begins with the running
    statistics as they were on the seat that `holds_start`, and nothing on the others; all of it is linear, so the
    parts of all seats add up to what one seat alone would have. Until `settle`, the buffers stand still.
    """

    def __init__(self, taken: _BatchNorm, piece: Piece, unit: int, *, holds_start: bool) -> None:
        super().__init__(taken, piece)
        self.unit = unit
        self._start = 1.0 if holds_start else 0.0
        self._passes = self._steps = 0
        self._moved_by: float | Tensor = 0.0
        # Neither a buffer, which DistributedDataParallel would overwrite with that of rank 0, nor in a checkpoint.
        self._gathered: Tensor | None = None
        self.register_state_dict_pre_hook(_refuse_unsettled)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_post_hook(_begin_anew)  # type: ignore[no-untyped-call]

    @property
    def settled(self) -> bool:
        """Whether the buffers hold all that was seen."""
        return self._gathered is None

    def part(self) -> Tensor:
        """This seat's part of mean and variance, [2, channels]."""
        assert self.running_mean is not None
        assert self.running_var is not None
        if self._gathered is not None:
            return self._gathered
        return torch.stack([self.running_mean, self.running_var]).mul_(self._start)

    def settle(self, mean: Tensor, variance: Tensor) -> None:
        """Take over the sums of all seats' parts, [channels] each, and begin anew from there."""
        assert self.running_mean is not None
        assert self.running_var is not None
        self.running_mean.copy_(mean)
        self.running_var.copy_(variance)
        self.forget()

    def forget(self) -> None:
        """Begin anew from the buffers."""
        self._gathered = None

    def train_on(self, inputs: Tensor) -> Tensor:
        """Raises RuntimeError where one pass uses the layer twice: its statistics would not be those of one step."""
        piece = self.piece
        if piece.number == self._passes and not piece.again:
            raise RuntimeError(
                "a batch normalisation is used twice in one forward pass, or outside a training step; "
                'ghost batches cannot tell its statistics apart (execution.batchnorm = "local" or "sync" can)'
            )
        self._passes = piece.number
        if not piece.again:
            self._fade()
        if not piece.rows:
            return self._of_no_account(inputs)
        ghosts = inputs.split(sizes(len(inputs), self.unit)) if blocks(len(inputs), self.unit) > 1 else (inputs,)
        noted = None if self._gathered is None else self._gathered.new_zeros(len(ghosts), *self._gathered.shape)
        outputs = []
        for number, rows in enumerate(ghosts):
            mean, variance = (None, None) if noted is None else noted[number]
            # With a momentum of 1 torch leaves mean and unbiased variance of these rows in the "running" buffers.
            outputs.append(functional.batch_norm(rows, mean, variance, self.weight, self.bias, True, 1.0, self.eps))
        if noted is not None and not piece.again:
            # All ghosts but the last have the same number of rows.
            total = noted[:-1].sum(0).mul_(len(ghosts[0])).add_(noted[-1], alpha=len(ghosts[-1])).mul_(self._moved_by)
            self._gathered = self.part().add_(total, alpha=piece.rows / piece.of / len(inputs))
        return torch.cat(outputs) if len(outputs) > 1 else outputs[0]

    def _fade(self) -> None:
        """Make room for a step's statistics in what was gathered, once a step."""
        if self.running_mean is not None and self._steps != self.piece.step:
            self._steps = self.piece.step
            self._moved_by = self.counted()
            self._gathered = self.part().mul_(1 - self._moved_by)

    def _of_no_account(self, inputs: Tensor) -> Tensor:
        if self.running_mean is not None:
            return self.judge(inputs)
        nothing = inputs.new_zeros(self.num_features)
        return functional.batch_norm(inputs, nothing, nothing + 1, self.weight, self.bias, eps=self.eps)


def _refuse_unsettled(layer: nn.Module, *_: Any) -> None:
    assert isinstance(layer, GhostNorm)
    if not layer.settled:
        raise RuntimeError("a checkpoint was asked for before the seats had combined their running statistics")


def _begin_anew(layer: nn.Module, _: Any) -> None:
    assert isinstance(layer, GhostNorm)
    layer.forget()
