"""Small networks that drop parts in every way an execution can reach: `attending:network`, `attending:headed`."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from torch import Tensor, nn

from escala.workloads.attention import Attend


class Mixing(nn.Module):
    """Two heads that mix with `Attend`, and one layer of dropout that is used twice."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.three = nn.Linear(width, 3 * width)
        self.mix = Attend(dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor) -> Tensor:
        query, key, value = self.three(rows).unflatten(-1, (6, -1)).transpose(1, 2).chunk(3, 1)
        mixed: Tensor = self.mix(query, key, value, causal=True)
        return rows + self.dropout(self.dropout(mixed.transpose(1, 2).flatten(2)))


class Lines(nn.Module):
    """Images [n, 1, 28, 28] -> every fourth line, as tokens [n, 7, 28]."""

    def forward(self, images: Tensor) -> Tensor:
        return images.squeeze(1)[:, ::4]


class Mean(nn.Module):
    """[n, t, width] -> [n, width]."""

    def forward(self, tokens: Tensor) -> Tensor:
        return tokens.mean(1)


class Heads(nn.Module):
    """Tokens [n, t, width] that look at earlier ones through four heads, which may be split."""

    def __init__(self, dropout: float, width: int) -> None:
        super().__init__()
        self.head_width = width // 4
        self.mix = Attend(dropout)
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        query, key, value = (
            layer(tokens).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        # Dropped once among parts, which lie on several seats, and once among wholes.
        mixed = self.dropout(self.mix(query, key, value, causal=True).transpose(1, 2).flatten(2))
        summed: Tensor = self.dropout(tokens + self.out(mixed))
        return summed


class Headed(nn.Sequential):
    """Images [n, 1, 28, 28], whose lines are the tokens -> logits [n, 10]."""

    def tensor_plan(self) -> dict[str, str]:
        return dict.fromkeys(("heads.query", "heads.key", "heads.value"), "column") | {"heads.out": "row"}

    def tensor_units(self) -> dict[str, int]:
        return dict.fromkeys(self.tensor_plan(), self.heads.head_width)


def headed(dropout: float = 0.0, width: int = 16) -> nn.Module:
    return Headed(
        OrderedDict(
            lines=Lines(),
            widen=nn.Linear(28, width),
            heads=Heads(dropout, width),
            mean=Mean(),
            logits=nn.Linear(width, 10),
        )
    )


class Planned(nn.Sequential):
    """Says which of its layers may be split."""

    def tensor_plan(self) -> dict[str, str]:
        return {"encode.linear1": "column", "encode.linear2": "row"}


def network(dropout: float = 0.0, width: int = 12) -> nn.Module:
    """Images [n, 1, 28, 28], whose lines are the tokens -> logits [n, 10]."""
    options: dict[str, Any] = {"dim_feedforward": width, "dropout": dropout, "batch_first": True}
    return Planned(
        OrderedDict(
            lines=Lines(),
            widen=nn.Linear(28, width),
            encode=nn.TransformerEncoderLayer(width, 2, **options),
            mix=Mixing(width, dropout),
            channels=nn.Dropout1d(dropout),
            mean=Mean(),
            logits=nn.Linear(width, 10),
        )
    )
