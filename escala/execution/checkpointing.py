"""Activation checkpointing: blocks keep what they are given alone, and pass again on the way back.

Chen et al., Training deep nets with sublinear memory cost (arXiv:1604.06174), on PyTorch's `torch.utils.checkpoint`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from escala.execution.batchnorm_layer import Layer
from escala.execution.dropout_layer import RowDropout
from escala.execution.piece import Piece
from escala.execution.segments import no_blocks
from escala.terms.errors import Unfit


def checkpointed(
    model: nn.Module, blocks: Sequence[nn.Module], wanted: bool, piece: Piece | None, *, compile: bool = False
) -> nn.Module:
    """The model, whose `blocks` but for the last pass again on the way back, if that is `wanted`; names stay.

    The last one's way back begins at once, so it would gain nothing. A pass that is made again draws the same numbers
    and leaves running statistics alone. Raises `Unfit` where there are no two blocks.
    """
    if not wanted:
        return model
    if len(blocks) < 2:
        raise Unfit(no_blocks(len(blocks)))
    _out_of_place(model)
    for block in blocks[:-1]:
        _checkpoint(block, piece, compile=compile)
    return model


def _out_of_place(model: nn.Module) -> None:
    """Have torch's own layers leave their inputs alone: a block's input is what it passes again with."""
    for layer in model.modules():
        if type(layer).__module__.startswith("torch.nn.") and getattr(layer, "inplace", False):
            layer.inplace = False  # type: ignore[assignment]


def _checkpoint(block: nn.Module, piece: Piece | None, *, compile: bool) -> None:
    inner = block.forward
    drawing = [layer for layer in block.modules() if isinstance(layer, RowDropout)]
    norms = [layer for layer in block.modules() if isinstance(layer, _BatchNorm | Layer)]
    how: dict[str, Any] = {"use_reentrant": False}
    if drawing or norms:
        how["context_fn"] = partial(_contexts, drawing, norms, piece)

    def forward(*given: Any, **named: Any) -> Any:
        if not block.training or not torch.is_grad_enabled():
            return inner(*given, **named)
        return checkpoint(inner, *given, **how, **named)

    # The compiler follows a checkpoint, but not what is put back around it; parts within are compiled nonetheless.
    apart = compile and bool(drawing or norms)
    block.forward = torch.compiler.disable(forward, recursive=False) if apart else forward


def _contexts(
    drawing: Sequence[RowDropout], norms: Sequence[nn.Module], piece: Piece | None
) -> tuple[AbstractContextManager[object], AbstractContextManager[object]]:
    """Around a block's pass, and around the same pass on the way back. Called when the first begins."""
    return nullcontext(), _again(drawing, [layer.draws.mark() for layer in drawing], norms, piece)


@contextmanager
def _again(
    drawing: Sequence[RowDropout], marks: Sequence[tuple[int, int]], norms: Sequence[nn.Module], piece: Piece | None
) -> Iterator[None]:
    now = [layer.draws.mark() for layer in drawing]
    kept = [dict(layer._buffers) for layer in norms]
    _go_to(drawing, marks)
    for layer in norms:
        # Other tensors, not the same ones put back: the way back may hold these.
        layer._buffers.update(
            {name: None if value is None else value.clone() for name, value in layer._buffers.items()}
        )
    if piece is not None:
        piece.again = True
    try:
        yield
    finally:
        if piece is not None:
            piece.again = False
        for layer, buffers in zip(norms, kept, strict=True):
            layer._buffers.update(buffers)
        _go_to(drawing, now)


def _go_to(drawing: Sequence[RowDropout], marks: Sequence[tuple[int, int]]) -> None:
    for layer, mark in zip(drawing, marks, strict=True):
        layer.draws.go_to(mark)
