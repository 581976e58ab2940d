"""BERT that finds the answer to a question in a text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import torch
from torch import Tensor, nn

from escala.data.base import Form
from escala.workloads import options
from escala.workloads.attention import Attend
from escala.workloads.base import Metric, Score, Workload
from escala.workloads.pretrained import bert_from, extra, folder_of
from escala.workloads.squad_judge import judge_of

PADDING = 0
_PLACES = 512
_OUTSIDE = -1

Carried: TypeAlias = tuple[Tensor, Tensor]
"""What goes from block to block: vectors [n, t, width] and which tokens are attended to, bool [n, 1, 1, t]."""


@dataclass(frozen=True)
class BertQa(Workload):
    """BERT-base (12 layers of width 768 with 12 heads, 3072 inner units) with a start and an end logit a token.

    The published two-node fine-tuning on SQuAD. Rows int32 [n, 2, t], token numbers (0 is padding) and segments, and
    targets [n, 3], first and last token of the answer and the question's number -> logits [n, t, 2]. 108,893,186
    parameters. Loss of a row: the mean of the cross-entropies of start and end, as in Devlin et al. 2018; a row whose
    answer was cut off (first token -1) adds nothing to the loss but counts as a row, in the batch's mean and in the
    score. Scores are F1 and exact match of the words that the best span of up to 30 tokens stands for.

    `folder` holds pretrained weights: a local folder, or a name on the Hugging Face hub that is fetched once. Its own
    sizes then hold instead of `layers`, `width`, `heads` and `vocabulary`. Without one the weights are drawn at
    random, normal, 0.02. The source leaves open which BERT and which length (384 here, as in BERT's own evaluation).

    `by_length`: batches of rows of like lengths. Needs the extra `transformers`.
    """

    folder: str = ""
    layers: int = 12
    width: int = 768
    heads: int = 12
    length: int = 384
    vocabulary: int = 30_522
    dropout: float = 0.1
    by_length: bool = False
    data: ClassVar[tuple[str, ...]] = ("squad", "synthetic-squad")
    metrics: ClassVar[tuple[Metric, ...]] = (
        Metric("F1", lowest=0.0, highest=1.0),
        Metric("exact match", lowest=0.0, highest=1.0),
    )
    evaluation_rows: ClassVar[int] = 64

    def __post_init__(self) -> None:
        options.at_least(1, layers=self.layers, width=self.width, heads=self.heads)
        options.at_least(2, length=self.length, vocabulary=self.vocabulary)
        options.share(dropout=self.dropout)
        options.divides(self.heads, self.width)

    def model(self) -> nn.Module:
        """Raises EscalaError ENV-EXTRA without `transformers`; MODEL-PATH, MODEL-KIND, MODEL-LOAD for the folder."""
        whole: Any = bert_from(folder_of(self.folder), self.length, self.dropout) if self.folder else self._drawn()
        for layer in whole.bert.encoder.layer:
            layer.attention.self = _Attention(layer.attention.self)
        return nn.Sequential(
            _Begin(whole.bert.embeddings),
            *(_Layer(layer) for layer in whole.bert.encoder.layer),
            _Head(whole.qa_outputs),
        )

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        """Embeddings, layers, head; from one to the next goes a pair, see `Carried`."""
        return tuple(model.children())

    def tensor_plan(self) -> Mapping[str, str]:
        """Attention by its heads, of which every device must get the same number, and the inner layers.

        Of the network that the options describe; a `folder` may hold more or fewer layers.
        """
        heads = dict.fromkeys(("attention.self.query", "attention.self.key", "attention.self.value"), "column")
        ways = heads | {"attention.output.dense": "row", "intermediate.dense": "column", "output.dense": "row"}
        return {f"{number}.layer.{name}": way for number in range(1, self.layers + 1) for name, way in ways.items()}

    def tensor_units(self) -> Mapping[str, int]:
        return {name: self.width // self.heads for name in self.tensor_plan() if ".attention." in name}

    def form(self) -> Form:
        folder = str(folder_of(self.folder)) if self.folder else ""
        return Form("questions", "wordpiece", self.vocabulary, self.length, folder)

    def notes(self) -> tuple[str, ...]:
        return (f"pretrained weights from {Path(self.folder).name}" if self.folder else "weights drawn at random",)

    def lengths(self, raw: Tensor) -> Tensor | None:
        return (raw[:, 0] != PADDING).sum(1) if self.by_length else None

    def inputs(self, raw: Tensor, dtype: torch.dtype) -> Tensor:
        del dtype
        return raw.long()

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Mean of the cross-entropies of start and end, SUMMED over the rows whose answer is not cut off."""
        wide = outputs if outputs.dtype is torch.float64 else outputs.float()
        # Classes are the tokens: [n, t, 2] against [n, 2].
        both = nn.functional.cross_entropy(wide, targets[:, :2], ignore_index=_OUTSIDE, reduction="sum")
        return both / 2

    def score(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Raises EscalaError DATA-QA: words cannot be compared without the side file, see `judge`."""
        return judge_of(b"", "questions")(outputs, targets)

    def judge(self, side: bytes) -> Score:
        """F1 and exact match, summed over the rows; raises EscalaError DATA-QA where a line of `side` is wrong."""
        return judge_of(side, "questions")

    def _drawn(self) -> nn.Module:
        library = extra("transformers")
        config = library.BertConfig(
            vocab_size=self.vocabulary,
            hidden_size=self.width,
            num_hidden_layers=self.layers,
            num_attention_heads=self.heads,
            intermediate_size=4 * self.width,
            max_position_embeddings=max(_PLACES, self.length),
            hidden_dropout_prob=self.dropout,
            attention_probs_dropout_prob=self.dropout,
            attn_implementation="sdpa",
        )
        drawn: nn.Module = library.BertForQuestionAnswering(config)
        return drawn


class _Begin(nn.Module):
    """[n, 2, t] -> `Carried`."""

    def __init__(self, embeddings: nn.Module) -> None:
        super().__init__()
        self.embeddings = embeddings

    def forward(self, rows: Tensor) -> Carried:
        tokens, segments = rows.unbind(1)
        seen = tokens != PADDING
        # The first token is always attended to: a row without any would give no numbers at all.
        seen[:, 0] = True
        return self.embeddings(tokens, segments), seen[:, None, None, :]


class _Attention(nn.Module):
    """The library's own, under the same names, with its mixing as a layer that an execution may exchange."""

    def __init__(self, taken: Any) -> None:
        super().__init__()
        self.query, self.key, self.value = taken.query, taken.key, taken.value
        self.head_width: int = taken.attention_head_size
        self.mix = Attend(taken.dropout.p)

    def forward(self, hidden: Tensor, attention_mask: Tensor, **_: Any) -> tuple[Tensor, None]:
        """[n, t, width] and which tokens are attended to, bool [n, 1, 1, t] -> [n, t, width]; never the weights."""
        query, key, value = (
            layer(hidden).unflatten(-1, (-1, self.head_width)).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        mixed: Tensor = self.mix(query, key, value, attention_mask)
        return mixed.transpose(1, 2).flatten(2), None


class _Layer(nn.Module):
    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, carried: Carried) -> Carried:
        hidden, seen = carried
        return self.layer(hidden, seen), seen


class _Head(nn.Module):
    """`Carried` -> [n, t, 2]."""

    def __init__(self, outputs: nn.Module) -> None:
        super().__init__()
        self.outputs = outputs

    def forward(self, carried: Carried) -> Tensor:
        hidden, _ = carried
        logits: Tensor = self.outputs(hidden)
        return logits
