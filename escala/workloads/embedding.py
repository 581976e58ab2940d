"""The first layer of the networks on text: token numbers become vectors that know their place."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SPREAD = 0.02
"""Standard deviation of initial weights in BERT and GPT-2 (Devlin et al. 2018, Radford et al. 2019)."""


class Embedding(nn.Module):
    """Token numbers [n, t] -> vectors [n, t, width], of the token plus of its place, both learned; t <= `length`.

    `padding`: the token that only fills rows up, whose vector stays zero; None: there is none.
    """

    def __init__(self, vocabulary: int, length: int, width: int, dropout: float, padding: int | None = None) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width, padding_idx=padding)
        self.places = nn.Parameter(torch.empty(length, width))
        self.dropout = nn.Dropout(dropout)
        nn.init.normal_(self.tokens.weight, std=SPREAD)
        nn.init.normal_(self.places, std=SPREAD)
        if padding is not None:
            with torch.no_grad():
                self.tokens.weight[padding].zero_()

    def forward(self, tokens: Tensor) -> Tensor:
        """int64 [n, t] -> [n, t, width]."""
        placed: Tensor = self.dropout(self.tokens(tokens) + self.places[: tokens.shape[1]])
        return placed
