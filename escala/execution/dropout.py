"""By whose numbers parts are dropped in training: a seat's own, as torch draws them, or those of each row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from escala.execution.dropout_attention import RowAttend, RowMultihead
from escala.execution.dropout_layer import BY_SEAT, Draws, RowDropout
from escala.execution.generators import generator_states
from escala.execution.piece import Piece, exchange
from escala.terms.errors import EscalaError
from escala.workloads.attention import Attend

_OF_CHANNELS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)
_DRAWING = (_DropoutNd, nn.MultiheadAttention, nn.RNNBase, nn.RReLU, Attend)


def draw_by_row(model: nn.Module, seed: int, piece: Piece) -> tuple[nn.Module, bool]:
    """Put layers that drop by row in the place of torch's and of `Attend`; the model, and whether there was any.

    What cannot be reached so is left alone; `nothing_drawn` finds it.
    """

    def make(name: str, layer: nn.Module) -> nn.Module | None:
        def dropout(p: float, *, channels: bool = False) -> RowDropout:
            return RowDropout(p, Draws(seed, name, piece), channels=channels)

        made: nn.Module | None = None
        # Subclasses may do anything; a share of 0 draws nothing.
        if isinstance(layer, _DropoutNd) and type(layer) in (nn.Dropout, *_OF_CHANNELS) and layer.p > 0:
            made = dropout(layer.p, channels=type(layer) in _OF_CHANNELS)
        elif isinstance(layer, Attend) and layer.p > 0:
            made = RowAttend(dropout(layer.p))
        elif type(layer) is nn.MultiheadAttention and layer.dropout > 0 and _is_plain(layer):
            made = RowMultihead(layer, dropout(layer.dropout))
        return None if made is None else made.train(layer.training)

    return exchange(model, make)


def share_in(layer: nn.Module) -> str | None:
    """The attribute that says what share of parts this layer drops in training; None of layers that drop nothing."""
    if isinstance(layer, _DropoutNd | Attend):
        return "p"
    return "dropout" if isinstance(layer, nn.MultiheadAttention | nn.RNNBase) else None


def drops(model: nn.Module) -> bool:
    """Whether any layer drops anything in training."""
    layers = ((layer, share_in(layer)) for layer in model.modules())
    return any(getattr(layer, name) > 0 for layer, name in layers if name)


@contextmanager
def nothing_drawn(model: nn.Module, *devices: torch.device) -> Iterator[None]:
    """Raises MODEL-RANDOM where what runs inside draws from torch's generators, which go by seat and not by row.

    While a graph is recorded generators cannot be asked; the steps that warmed up for it have been watched.
    """
    if any(device.type == "cuda" for device in devices) and torch.cuda.is_current_stream_capturing():
        yield
        return
    before = _generators(devices)
    yield
    if all(torch.equal(old, new) for old, new in zip(before, _generators(devices), strict=True)):
        return
    left = [name for name, layer in model.named_modules() if isinstance(layer, _DRAWING)]
    raise EscalaError(
        "MODEL-RANDOM",
        left[0] if left else "the model",
        "draws random numbers that do not go by row"
        + ("" if left else ", in a function that no layer can stand in for"),
        expected="nn.Dropout layers, escala.workloads.attention.Attend, or nn.MultiheadAttention with batch_first",
        next_step=BY_SEAT,
    )


def _generators(devices: Sequence[torch.device]) -> list[torch.Tensor]:
    return [state for device in devices for state in generator_states(device)]


def _is_plain(layer: nn.MultiheadAttention) -> bool:
    return bool(layer.batch_first and layer._qkv_same_embed_dim and layer.bias_k is None and not layer.add_zero_attn)
