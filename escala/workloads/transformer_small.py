"""Small Transformer encoder that sorts texts into classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from escala.data.base import Form
from escala.workloads import options
from escala.workloads.base import Workload
from escala.workloads.embedding import Embedding

WIDTH = 256
HEADS = 8
LAYERS = 4
FORWARD = 1024
HEAD = 128
PADDING = 0

Carried: TypeAlias = tuple[Tensor, Tensor]
"""What goes from block to block: vectors [n, t, 256] and which of the tokens are padding, bool [n, t]."""


@dataclass(frozen=True)
class TransformerSmall(Workload):
    """4 encoder layers of width 256 with 8 heads and 1024 inner units; 256-128-2 on the first token.

    The IMDB + Transformer small pair of the six published pairs. Token numbers [n, t] int32, t at most `length`,
    where 0 is padding and the first is [CLS], placed there when the text was encoded -> logits [n, classes].
    7,353,730 parameters with 16,000 tokens and a length of 256. The source gives widths, layers, heads and the head
    with ReLU and dropout; it leaves open the vocabulary and the length, the dropout (0.1 here, everywhere), the order
    within a layer (normalised after the sum, as PyTorch does by default and Vaswani et al. 2017 did), places (learned
    here) and the initial weights (PyTorch's defaults; embeddings normal, 0.02).

    `by_length`: batches of texts of like lengths, cut after the longest, so that less padding is computed.
    """

    vocabulary: int = 16_000
    length: int = 256
    dropout: float = 0.1
    classes: int = 2
    by_length: bool = False
    data: ClassVar[tuple[str, ...]] = ("imdb", "synthetic-imdb")
    evaluation_rows: ClassVar[int] = 100

    def __post_init__(self) -> None:
        options.at_least(2, vocabulary=self.vocabulary, length=self.length, classes=self.classes)
        options.share(dropout=self.dropout)

    def model(self) -> nn.Module:
        return nn.Sequential(
            _Begin(self.vocabulary, self.length, self.dropout),
            *(_Layer(self.dropout) for _ in range(LAYERS)),
            _Head(self.classes, self.dropout),
        )

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        """Embedding, layers, head; from one to the next goes a pair, see `Carried`."""
        return tuple(model.children())

    def tensor_plan(self) -> Mapping[str, str]:
        """The inner layers; PyTorch's attention keeps its weights in one parameter that is no layer."""
        numbers = range(1, LAYERS + 1)
        return {
            f"{number}.encoder.linear{place}": way for number in numbers for place, way in ((1, "column"), (2, "row"))
        }

    def form(self) -> Form:
        return Form("labelled text", "bytes", self.vocabulary, self.length)

    def lengths(self, raw: Tensor) -> Tensor | None:
        return (raw != PADDING).sum(1) if self.by_length else None

    def inputs(self, raw: Tensor, dtype: torch.dtype) -> Tensor:
        del dtype
        return raw.long()


class _Begin(nn.Module):
    def __init__(self, vocabulary: int, length: int, dropout: float) -> None:
        super().__init__()
        self.embedding = Embedding(vocabulary, length, WIDTH, dropout, PADDING)

    def forward(self, tokens: Tensor) -> Carried:
        padding = tokens == PADDING
        # The first token is always attended to: a row without any would give no numbers at all.
        padding[:, 0] = False
        return self.embedding(tokens), padding


class _Layer(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(WIDTH, HEADS, FORWARD, dropout, batch_first=True)

    def forward(self, carried: Carried) -> Carried:
        hidden, padding = carried
        return self.encoder(hidden, src_key_padding_mask=padding), padding


class _Head(nn.Module):
    def __init__(self, classes: int, dropout: float) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(WIDTH, HEAD), nn.ReLU(), nn.Dropout(dropout), nn.Linear(HEAD, classes))

    def forward(self, carried: Carried) -> Tensor:
        hidden, _ = carried
        logits: Tensor = self.layers(hidden[:, 0])
        return logits
