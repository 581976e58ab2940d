"""How dropout draws its masks on processors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from escala.execution.piece import exchange
from escala.terms.experiment import DropoutKernel

_BITS = 16
_OUTCOMES = 2**_BITS
_LEAST = -(2**63)


class PackedDropout(nn.Module):
    """torch's Dropout with masks from words of 64 random bits, of which each serves four places.

    [...] -> the same shape. torch draws places on a processor one after the other, which takes 0.2 to 0.5 ms for
    64 x 512 of them on two cores: a quarter of the MLP's step. The share that is dropped is `p` to 16 bits, and what
    stays is scaled by that very share, so that the mean stays.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        # Only p = 1 may drop everything: of anything less something stays, and is scaled.
        self._dropped = _OUTCOMES if p >= 1 else min(round(p * _OUTCOMES), _OUTCOMES - 1)

    def forward(self, inputs: Tensor) -> Tensor:
        """[...] -> [...]"""
        if not self.training or not self._dropped:
            return inputs
        if self._dropped == _OUTCOMES:
            return inputs * 0
        many = inputs.numel()
        words = torch.empty(-(-many * _BITS // 64), dtype=torch.int64, device=inputs.device)
        drawn = words.random_(_LEAST, None).view(torch.int16)[:many].view(inputs.shape)
        kept = (drawn >= self._dropped - _OUTCOMES // 2).to(inputs.dtype)
        scaled: Tensor = inputs * kept.mul_(_OUTCOMES / (_OUTCOMES - self._dropped))
        return scaled

    def extra_repr(self) -> str:
        """As torch shows its own."""
        return f"p={self.p}"


def with_dropout_kernel(model: nn.Module, kernel: DropoutKernel) -> nn.Module:
    """The model with that kernel in each of its `nn.Dropout`; with `default` as it is.

    Attention and recurrent layers drop within functions of torch, and keep its draws, as subclasses do.
    """
    if kernel == "default":
        return model

    def make(_: str, layer: nn.Module) -> nn.Module | None:
        # A share of 0 draws nothing, so nothing is gained in its place.
        if type(layer) is not nn.Dropout or layer.p == 0:
            return None
        return PackedDropout(layer.p).train(layer.training)

    return exchange(model, make)[0]
