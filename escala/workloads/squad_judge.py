"""From logits to answers in words, and their score."""

from __future__ import annotations

from functools import cache

import msgspec
import torch
from torch import Tensor

from escala.terms.errors import EscalaError
from escala.workloads.base import Score
from escala.workloads.squad_score import exact_match, f1

LONGEST = 30
"""Tokens of the longest answer, as in BERT's own evaluation."""


class Asked(msgspec.Struct, frozen=True):
    """One line of the side file.

    `offsets` are first character and end, in the context, of every token of the row; [0, 0] outside the context.
    """

    context: str
    offsets: list[tuple[int, int]]
    answers: list[str]


def judge_of(side: bytes, name: str) -> Score:
    """Takes logits [n, t, 2] and targets [n, 3]; returns the sums of F1 and exact match over the rows, float32 [2].

    `side` has a JSON object a line, read when its question is judged: the training part's never is. The answers are
    words, so the device is waited for once a call. Raises EscalaError DATA-QA where a question's line is missing or
    damaged, naming the set `name`.
    """

    @cache
    def lines() -> list[bytes]:
        return side.splitlines()

    def score(outputs: Tensor, targets: Tensor) -> Tensor:
        asked = [_asked(lines(), number, name) for number in targets[:, 2].tolist()]
        tokens = outputs.shape[1]
        context = torch.zeros(len(asked), tokens, dtype=torch.bool)
        for row, question in enumerate(asked):
            inside = [end > begin for begin, end in question.offsets[:tokens]]
            context[row, : len(inside)] = torch.tensor(inside, dtype=torch.bool)
        spans = best_spans(outputs, context.to(outputs.device)).tolist()
        told = [_told(question, first, last) for question, (first, last) in zip(asked, spans, strict=True)]
        pairs = list(zip(told, asked, strict=True))
        sums = [sum(measure(words, question.answers) for words, question in pairs) for measure in (f1, exact_match)]
        return torch.tensor(sums, dtype=torch.float32, device=outputs.device)

    return score


def best_spans(logits: Tensor, context: Tensor) -> Tensor:
    """First and last token, int64 [n, 2], of the span of up to `LONGEST` tokens with the highest sum of logits.

    `logits` [n, t, 2], `context` bool [n, t]: where a span may begin and end. Of equal sums the one that begins, then
    ends, first; (-1, -1) where the row has no context.
    """
    wide = logits if logits.dtype is torch.float64 else logits.float()
    starts, ends = wide.masked_fill(~context.unsqueeze(-1), -torch.inf).unbind(-1)
    # ends_from[n, t, k] is the end k tokens after t; only so many sums are made, not t x t.
    ends_from = torch.nn.functional.pad(ends, (0, LONGEST - 1), value=-torch.inf).unfold(1, LONGEST, 1)
    best = (starts.unsqueeze(-1) + ends_from).flatten(1).argmax(1)
    first = best // LONGEST
    spans = torch.stack((first, first + best % LONGEST), dim=1)
    return spans.masked_fill(~context.any(1, keepdim=True), -1)


def _asked(lines: list[bytes], number: int, name: str) -> Asked:
    where = f"{name}, question {number}"
    if not 0 <= number < len(lines):
        raise _fault(where, f"has no line among the {len(lines)} of its side file")
    try:
        return msgspec.json.decode(lines[number], type=Asked)
    except msgspec.DecodeError as error:
        raise _fault(where, f"has a damaged line in its side file: {error}") from error


def _fault(where: str, what: str) -> EscalaError:
    return EscalaError(
        "DATA-QA", where, what, expected="context, offsets and answers", next_step="prepare the data again"
    )


def _told(question: Asked, first: int, last: int) -> str:
    return "" if first < 0 else question.context[question.offsets[first][0] : question.offsets[last][1]]
