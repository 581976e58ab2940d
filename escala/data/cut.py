"""Documents become rows of token numbers, some at a time: packed for `text`, one a row for the other kinds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from escala.data.base import Part
from escala.data.texts import Document, Labelled, Question
from escala.data.tokens import Vocabulary
from escala.terms.errors import EscalaError

_AT_ONCE = 1024
"""Documents that are cut together, by all cores, if they are short."""
_CHARACTERS = 1 << 20
"""Characters after which no further document is added to those."""
_QUESTION = 64
"""Tokens of the longest question, as in BERT's own preparation of SQuAD."""


class Rows(NamedTuple):
    """Some rows: `inputs` int32 [n, *shape], `targets` int64 [n, ...], and their lines of the side file."""

    inputs: NDArray[np.int32]
    targets: NDArray[np.int64]
    side: bytes = b""


@dataclass
class Tally:
    """What was seen of a part so far; `bytes` of UTF-8, `padding` tokens that only fill rows up.

    `cut` counts labelled texts and questions that lost their end, `outside` questions whose answer is not in their
    row.
    """

    rows: int = 0
    documents: int = 0
    lines: int = 0
    bytes: int = 0
    padding: int = 0
    cut: int = 0
    outside: int = 0

    def take(self, text: str) -> None:
        """Count one document."""
        raw = text.encode()
        self.documents += 1
        self.bytes += len(raw)
        ends = raw.count(b"\n") + raw.count(b"\r") - raw.count(b"\r\n")
        self.lines += ends + (not raw.endswith((b"\n", b"\r")))


def text_rows(documents: Iterable[Document], words: Vocabulary, length: int, tally: Tally) -> Iterator[Rows]:
    """All documents as one stream, its end-of-text token between them, in rows of `length` + 1 tokens.

    A row begins with the last token of the row before it, so each token but the very first is predicted exactly
    once. Targets [n, 1] count the tokens to be predicted: `length`, in the last row perhaps fewer.
    """
    between, rest = np.asarray([words.end], np.int32), np.empty(0, np.int32)
    for batch in _batches(documents):
        pieces = [rest]
        texts = [text for text in batch if isinstance(text, str)]
        for text, ids in zip(texts, words.numbers(texts), strict=True):
            if tally.documents:
                pieces.append(between)
            tally.take(text)
            pieces.append(ids)
        stream = np.concatenate(pieces)
        full = max(0, len(stream) - 1) // length
        if full:
            windows = np.lib.stride_tricks.sliding_window_view(stream, length + 1)[: full * length : length]
            yield Rows(np.ascontiguousarray(windows), np.full((full, 1), length, np.int64))
        rest = stream[full * length :]
    if len(rest) > 1:
        last = np.zeros((1, length + 1), np.int32)
        last[0, : len(rest)] = rest
        tally.padding += length + 1 - len(rest)
        yield Rows(last, np.full((1, 1), len(rest) - 1, np.int64))


def labelled_rows(
    documents: Iterable[Document], words: Vocabulary, length: int, tally: Tally, classes: int, where: str
) -> Iterator[Rows]:
    """A document a row of `length` tokens, [CLS] first, cut behind them, filled up with 0; targets [n] are classes.

    Raises EscalaError DATA-LABEL for a class outside 0 to `classes` - 1.
    """
    for batch in _batches(documents):
        found = [document for document in batch if isinstance(document, Labelled)]
        rows = np.zeros((len(found), length), np.int32)
        rows[:, 0] = words.begin
        labels = np.asarray([document.label for document in found], np.int64)
        if ((labels < 0) | (labels >= classes)).any():
            wrong = int(np.flatnonzero((labels < 0) | (labels >= classes))[0])
            raise EscalaError(
                "DATA-LABEL",
                where,
                f"the label of document {tally.documents + wrong:,} (from 0) is {labels[wrong]}",
                expected=f"labels go from 0 to {classes - 1}",
                next_step="put the label right",
            )
        for number, ids in enumerate(words.numbers([document.text for document in found])):
            tally.take(found[number].text)
            used = min(len(ids), length - 1)
            rows[number, 1 : used + 1] = ids[:used]
            tally.cut += len(ids) > used
            tally.padding += length - 1 - used
        yield Rows(rows, labels)


def question_rows(
    documents: Iterable[Document], words: Vocabulary, length: int, tally: Tally, part: Part
) -> Iterator[Rows]:
    """A question a row: [CLS] question [SEP] context [SEP] and below it the segments, inputs [n, 2, length].

    Where the context is longer than the row, a window of it is taken: in training rows one that holds the first
    answer, in the others the first, because whoever asks does not know. Targets [n, 3] are the answer's first and
    last token, -1 where it is not in the row, and the question's number; `side` has a JSON object a row.
    """
    for batch in _batches(documents):
        found = [document for document in batch if isinstance(document, Question)]
        asked = words.numbers([document.question for document in found])
        # Several questions in a row are usually asked about the same text.
        contexts = list(dict.fromkeys(document.context for document in found))
        placed = dict(zip(contexts, words.placed(contexts), strict=True))
        inputs = np.zeros((len(found), 2, length), np.int32)
        targets = np.full((len(found), 3), -1, np.int64)
        lines = []
        for number, question in enumerate(found):
            targets[number, 2] = tally.documents
            tally.take(question.question + question.context)
            ids, places = placed[question.context]
            used = min(_QUESTION, (length - 3) // 2)
            tally.cut += len(asked[number]) > used
            head = [words.begin, *asked[number][:used].tolist(), words.end]
            room = length - len(head) - 1
            answer = _tokens_of(question, places)
            begin = _window(answer, len(ids), room) if part == "train" else 0
            end = min(begin + room, len(ids))
            row = [*head, *ids[begin:end].tolist(), words.end]
            inputs[number, 0, : len(row)] = row
            inputs[number, 1, len(head) : len(row)] = 1
            tally.padding += length - len(row)
            if answer and begin <= answer[0] and answer[1] < end:
                targets[number, :2] = np.asarray(answer) - begin + len(head)
            elif question.answers:
                tally.outside += 1
            offsets = [[0, 0]] * len(head) + places[begin:end].tolist() + [[0, 0]]
            told = {
                "context": question.context,
                "offsets": offsets,
                "answers": [text for text, _ in question.answers],
            }
            lines.append(msgspec.json.encode(told) + b"\n")
        yield Rows(inputs, targets, b"".join(lines))


def _batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    batch, size = list[Document](), 0
    for document in documents:
        batch.append(document)
        size += len(_main_text(document))
        if len(batch) == _AT_ONCE or size >= _CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _main_text(document: Document) -> str:
    if isinstance(document, Question):
        return document.context
    return document.text if isinstance(document, Labelled) else document


def _tokens_of(question: Question, places: NDArray[Any]) -> tuple[int, int] | None:
    """First and last token that share a character with the first answer; None: there is none."""
    if not question.answers or not len(places):
        return None
    text, start = question.answers[0]
    first = int(np.searchsorted(places[:, 1], start, side="right"))
    last = int(np.searchsorted(places[:, 0], start + len(text), side="left")) - 1
    return (first, last) if first <= last else None


def _window(answer: tuple[int, int] | None, tokens: int, room: int) -> int:
    """Where the window of `room` tokens begins: the first of those half a window apart that holds the answer."""
    if answer is None or answer[1] < room:
        return 0
    for begin in range(0, tokens, max(1, room // 2)):
        if begin <= answer[0] and answer[1] < begin + room:
            return begin
    return answer[0]
