"""Texts, labelled texts and questions from a table."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass
from typing import Any

from escala.data.base import PARTS, Part
from escala.data.check_text import wrong_with
from escala.data.table import QUESTIONS, Batch, Columns, Table, arrow_errors, check_labels, fault, labels_of, whole
from escala.data.texts import Document, Labelled, Question, TextFacts, TextSource

_AT_ONCE = 1024
_NAMED = 5
"""Questions that an error names."""


@dataclass(frozen=True)
class TableTexts(TextSource):
    """A document a row. Rows of `text` that are empty, which stand for empty lines, are left out."""

    name: str
    told: str
    tables: Mapping[Part, Table]
    columns: Columns
    notes: tuple[str, ...] = ()

    def facts(self) -> TextFacts:
        """Reads all training labels where the classes have no names."""
        names = self.columns.class_names
        return TextFacts(self.name, "real", self.told, self.columns.kind, self._classes(), names, self.notes)

    def digest(self) -> str:
        """A sha256 in hex over all documents. Reads them all."""
        seen = hashlib.sha256()
        for part in self.tables:
            seen.update(f"{part}\n".encode())
            for document in self._documents(part):
                content = document if isinstance(document, str) else astuple(document)
                seen.update(json.dumps(content).encode() + b"\n")
        return seen.hexdigest()

    def documents(self, part: Part) -> Iterator[Document]:
        """All documents, after a look at all labels or questions.

        Raises EscalaError DATA-PARQ, DATA-ENC, DATA-EMPTY, DATA-LABEL with row and value, DATA-QA with the ids of
        questions by what is wrong with them.
        """
        table = self._table(part)
        if self.columns.label:
            check_labels(table, self.columns.label, labels_of(table, self.columns.label), self._classes())
        if self.columns.kind == "questions":
            _check_questions(table, self._documents(part))
        empty = True
        for document in self._documents(part):
            empty = False
            yield document
        if empty:
            raise fault(table.where, f"holds no {self.columns.kind}", code="DATA-EMPTY")

    def parts(self) -> tuple[Part, ...]:
        return (*PARTS, *(part for part in self.tables if part not in PARTS))

    def _documents(self, part: Part) -> Iterator[Document]:
        columns = self.columns
        if columns.kind == "questions":
            for batch in self._table(part).batches(QUESTIONS, _AT_ONCE):
                yield from _questions(batch)
        elif columns.label:
            for batch in self._table(part).batches([columns.content, columns.label], _AT_ONCE):
                labels = whole(batch, columns.label).to_pylist()
                for text, label in zip(_values(batch, columns.content), labels, strict=True):
                    yield Labelled(text, label)
        else:
            for batch in self._table(part).batches([columns.content], _AT_ONCE):
                yield from filter(None, _values(batch, columns.content))

    def _classes(self) -> int:
        if not self.columns.label:
            return 0
        if self.columns.class_names:
            return len(self.columns.class_names)
        labels = labels_of(self._table("train"), self.columns.label)
        return 1 + max(0, int(labels.max())) if len(labels) else 0

    def _table(self, part: Part) -> Table:
        if part not in self.tables:
            raise fault(self.told, f"holds no rows for {part}", "expected train beside test or validation")
        return self.tables[part]


def _values(batch: Batch, column: str) -> list[Any]:
    """A column as Python's own values; text is decoded here."""
    array = whole(batch, column)
    with arrow_errors(batch.where, [column]):
        values: list[Any] = array.to_pylist()
    return values


def _questions(batch: Batch) -> Iterator[Question]:
    rows = zip(*(_values(batch, column) for column in QUESTIONS), strict=True)
    for number, (identity, question, context, answers) in enumerate(rows):
        texts, starts = answers["text"], answers["answer_start"]
        if texts is None or starts is None or None in texts or None in starts or len(texts) != len(starts):
            what = f"row {batch.first + number:,} (from 0) has not a text and a start for each answer"
            raise fault(batch.where, what, column="answers")
        yield Question(identity, question, context, tuple(zip(texts, starts, strict=True)))


def _check_questions(table: Table, questions: Iterator[Document]) -> None:
    """Raises EscalaError DATA-QA naming questions by what is wrong with them."""
    seen, wrong = set[str](), dict[str, list[str]]()
    for question in questions:
        if isinstance(question, Question):
            for what in wrong_with(question, seen):
                wrong.setdefault(what, []).append(question.id)
            seen.add(question.id)
    if wrong:
        told = "; ".join(
            f"{what}: {', '.join(ids[:_NAMED])}{f' and {len(ids) - _NAMED:,} more' if len(ids) > _NAMED else ''}"
            for what, ids in wrong.items()
        )
        raise fault(table.where, told, code="DATA-QA")
