"""Transformer language model: which token comes next."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn.utils import skip_init

from escala.data.base import Form
from escala.terms.errors import EscalaError
from escala.workloads import options
from escala.workloads.attention import Attend
from escala.workloads.base import Metric, Workload
from escala.workloads.embedding import SPREAD, Embedding

_NOT_COUNTED = -100
_LARGEST = 700.0
_SIZES = frozenset(("width", "layers", "heads", "ff"))
_STATE_BYTES = 16
_STEP = 256


def perplexity(mean: float) -> float:
    """e to the mean negative log likelihood of a token; past e^700, which no file of numbers holds, e^700."""
    return math.exp(min(mean, _LARGEST))


@dataclass(frozen=True)
class TransformerLm(Workload):
    """8 layers of width 512 with 8 heads and 2048 inner units, each causal; a head over 50,257 tokens.

    The WikiText-103 + Transformer medium pair of the six published pairs. Stored rows of token numbers
    [n, length + 1] int32, of which each row's target says how many are to be predicted -> logits
    [n, length, vocabulary]. 51,082,752 parameters with the head tied to the embedding, 76,814,336 without. Loss and
    perplexity are over tokens with one denominator for all rows, padding left out.

    The source gives widths, layers, heads and the vocabulary; it leaves open the length (256 here), dropout (0.1) and
    all else, where this is GPT-2 (Radford et al. 2019): normalised before each part and once at the end, learned
    places, GELU by its tanh form, normal initial weights of 0.02, smaller by the square root of twice the layers
    where they feed the sum, `tied` head.

    `fill` above 0 decides the size: width, heads, inner units and layers grow together until weights, gradients and
    the two moments of Adam, 16 bytes a parameter, take that share of one device's memory.
    """

    vocabulary: int = 50_257
    length: int = 256
    layers: int = 8
    width: int = 512
    heads: int = 8
    ff: int = 2048
    dropout: float = 0.1
    tied: bool = True
    fill: float = 0.0
    data: ClassVar[tuple[str, ...]] = ("wikitext-103", "wikitext-2", "synthetic-wikitext")
    metrics: ClassVar[tuple[Metric, ...]] = (Metric("perplexity", "lower", "count", perplexity, lowest=1.0),)
    # A row's logits take 51 MB.
    evaluation_rows: ClassVar[int] = 8

    def __post_init__(self) -> None:
        options.at_least(2, vocabulary=self.vocabulary)
        options.at_least(1, length=self.length, layers=self.layers, width=self.width, heads=self.heads, ff=self.ff)
        options.share(dropout=self.dropout)
        options.divides(self.heads, self.width)
        options.between(0, 100, fill=self.fill)

    def decided(self, options: Mapping[str, Any], memory_bytes: int) -> Mapping[str, Any]:
        """Raises EscalaError CFG-VALUE where a size is given beside `fill`."""
        if not self.fill:
            return options
        given = {key: value for key, value in options.items() if key != "fill"}
        if both := _SIZES & given.keys():
            raise EscalaError(
                "CFG-VALUE",
                f"workload.options.{min(both)}",
                "stands beside fill, which decides it",
                next_step="give one of the two",
            )
        rest = self.vocabulary * (1 if self.tied else 2) + self.length + 2
        return given | grown(round(self.fill * memory_bytes / _STATE_BYTES), rest)

    def model(self) -> nn.Module:
        if self.fill:
            raise EscalaError(
                "MODEL-SIZE",
                "workload.options.fill",
                "is a share of a device that is not known here",
                next_step="give width, heads, ff and layers instead",
            )
        embedding = Embedding(self.vocabulary, self.length, self.width, self.dropout)
        # Drawn once, below: of a thousand million weights torch's own numbers, which nobody wants, take ten seconds.
        head = skip_init(nn.Linear, self.width, self.vocabulary, bias=False)
        made = [_Layer(self.width, self.heads, self.ff, self.dropout) for _ in range(self.layers)]
        network = nn.Sequential(embedding, *made, nn.LayerNorm(self.width), head)
        if self.tied:
            head.weight = embedding.tokens.weight
        for name, module in network.named_modules():
            if isinstance(module, nn.Linear):
                feeds_sum = name.endswith(("attention.out", "narrow"))
                nn.init.normal_(module.weight, std=SPREAD / math.sqrt(2 * self.layers) if feeds_sum else SPREAD)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
        return network

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        """Embedding, layers, last normalisation, head. A `tied` head shares its weight with the embedding."""
        return tuple(model.children())

    def tensor_plan(self) -> Mapping[str, str]:
        """Attention by its heads, of which every device must get the same number, and the inner layers."""
        heads = dict.fromkeys(("attention.query", "attention.key", "attention.value"), "column")
        ways = heads | {"attention.out": "row", "wide": "column", "narrow": "row"}
        return {f"{number}.{name}": way for number in range(1, self.layers + 1) for name, way in ways.items()}

    def tensor_units(self) -> Mapping[str, int]:
        return {name: self.width // self.heads for name in self.tensor_plan() if ".attention." in name}

    def form(self) -> Form:
        return Form("text", "bytes", self.vocabulary, self.length)

    def example(self, raw: Tensor, targets: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Stored rows [n, t + 1], targets [n, 1] -> tokens [n, t] and the tokens after them, -100 past the row's."""
        del dtype
        tokens = raw.long()
        after = tokens[:, 1:]
        places = torch.arange(after.shape[1], device=raw.device)
        return tokens[:, :-1], after.masked_fill(places >= targets[:, :1], _NOT_COUNTED)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Negative log likelihood SUMMED over the tokens that count, natural logarithm, in float32 or wider."""
        wide = outputs if outputs.dtype is torch.float64 else outputs.float()
        return nn.functional.cross_entropy(
            wide.flatten(0, 1), targets.flatten(), ignore_index=_NOT_COUNTED, reduction="sum"
        )

    def count(self, targets: Tensor) -> int:
        return int(targets.sum())

    def score(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self.loss(outputs, targets)


def grown(parameters: int, rest: int) -> dict[str, int]:
    """The widest network of at most so many parameters that has a layer or more for every 128 units of width.

    `rest`: parameters outside of the layers for each unit of width. Widths are multiples of 256, heads have 64 units
    (Brown et al. 2020, table 2.1, lies about there). Never smaller than 2 layers of width 256.
    """
    found = {"width": _STEP, "layers": 2}
    for width in range(_STEP, parameters, _STEP):
        layers = (parameters - rest * width) // (12 * width**2 + 13 * width)
        if layers < max(2, width // 128):
            break
        found = {"width": width, "layers": layers}
    return found | {"heads": found["width"] // 64, "ff": 4 * found["width"]}


class _Layer(nn.Module):
    """[n, t, width] -> [n, t, width]."""

    def __init__(self, width: int, heads: int, ff: int, dropout: float) -> None:
        super().__init__()
        self.before_attention = nn.LayerNorm(width)
        self.attention = _Attention(width, heads, dropout)
        self.before_wide = nn.LayerNorm(width)
        self.wide = skip_init(nn.Linear, width, ff)
        self.activation = nn.GELU(approximate="tanh")
        self.narrow = skip_init(nn.Linear, ff, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor) -> Tensor:
        hidden = hidden + self.dropout(self.attention(self.before_attention(hidden)))
        inner = self.narrow(self.activation(self.wide(self.before_wide(hidden))))
        summed: Tensor = hidden + self.dropout(inner)
        return summed


class _Attention(nn.Module):
    """Every token looks at itself and those before it."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.head_width = width // heads
        self.mix = Attend(dropout)
        # Three layers, not one: columns of one joined layer could not be split by heads.
        self.query = skip_init(nn.Linear, width, width)
        self.key = skip_init(nn.Linear, width, width)
        self.value = skip_init(nn.Linear, width, width)
        self.out = skip_init(nn.Linear, width, width)

    def forward(self, hidden: Tensor) -> Tensor:
        mixed = self.mix(
            self._by_head(self.query(hidden)),
            self._by_head(self.key(hidden)),
            self._by_head(self.value(hidden)),
            causal=True,
        )
        attended: Tensor = self.out(mixed.transpose(1, 2).flatten(2))
        return attended

    def _by_head(self, vectors: Tensor) -> Tensor:
        # The number of heads is left open: split across devices, a seat has only some of them.
        parted: Tensor = vectors.unflatten(-1, (-1, self.head_width))
        return parted.transpose(1, 2)
