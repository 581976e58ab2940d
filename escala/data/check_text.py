"""Reading a set of texts once: how many there are, how long, of which classes, and which cannot be used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from escala.data.base import Part
from escala.data.checked import MOST, Checked, Fault, Faults, PartFacts, Progress
from escala.data.texts import Document, Labelled, Question, TextFacts, TextSource

_EVERY = 1000
"""Documents between two tellings of progress."""
_NAMED = 5
"""Questions that a sentence names."""


def check_texts(source: TextSource, facts: TextFacts, faults: Faults, progress: Progress) -> Checked:
    """Read all documents of all parts. Faults of the data go to `faults`."""
    parts = tuple(_check_part(source, facts, part, faults, progress) for part in source.parts())
    digest = ""
    with faults.kept():
        digest = source.digest()
    return Checked(
        facts.name,
        facts.origin,
        facts.where,
        facts.kind,
        "" if faults.count else digest,
        facts.classes,
        facts.class_names,
        None,
        None,
        parts,
        tuple(faults.first),
        faults.count,
        facts.notes,
    )


@dataclass
class _Count:
    """What was seen of a part so far; lengths in bytes of UTF-8."""

    rows: int = 0
    bytes: int = 0
    longest_line: int = 0
    labels: Counter[int] = field(default_factory=Counter)
    unanswerable: int = 0
    answers: int = 0
    wrong_labels: list[tuple[int, int]] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)
    wrong_ids: dict[str, list[str]] = field(default_factory=dict)
    """By what is wrong with these questions."""

    def take(self, document: Document, classes: int) -> None:
        """Count one document."""
        if isinstance(document, Question):
            self._question(document)
            texts: tuple[str, ...] = (document.question, document.context)
        elif isinstance(document, Labelled):
            self.labels[document.label] += 1
            if not 0 <= document.label < classes and len(self.wrong_labels) < MOST:
                self.wrong_labels.append((self.rows, document.label))
            texts = (document.text,)
        else:
            texts = (document,)
        for text in texts:
            raw = text.encode()
            self.bytes += len(raw)
            self.longest_line = max(self.longest_line, *map(len, raw.split(b"\n")))
        self.rows += 1

    def _question(self, question: Question) -> None:
        self.unanswerable += not question.answers
        self.answers += len(question.answers)
        for what in wrong_with(question, self.ids):
            self.wrong_ids.setdefault(what, []).append(question.id)
        self.ids.add(question.id)


def _check_part(source: TextSource, facts: TextFacts, part: Part, faults: Faults, progress: Progress) -> PartFacts:
    count = _Count()
    with faults.kept():
        for document in source.documents(part):
            count.take(document, facts.classes)
            if count.rows % _EVERY == 0:
                progress(part, count.rows, None)
    progress(part, count.rows, count.rows)
    where = f"{facts.where}, {part}"
    faults.add_all(_label_faults(where, count.wrong_labels, facts.classes), _outside(count.labels, facts.classes))
    for what, ids in count.wrong_ids.items():
        more = f" and {len(ids) - _NAMED:,} more" if len(ids) > _NAMED else ""
        faults.add(Fault("DATA-QA", where, f"{what}: {', '.join(ids[:_NAMED])}{more}", len(ids)))
    figures = {"bytes": count.bytes, "longest line": count.longest_line}
    if facts.kind == "questions":
        figures |= {"answers": count.answers, "without answer": count.unanswerable}
    return PartFacts(part, count.rows, tuple(count.labels[label] for label in range(facts.classes)), figures)


def wrong_with(question: Question, seen: set[str]) -> Iterator[str]:
    """Each kind of thing that is wrong with a question, once."""
    if question.id in seen:
        yield "the same id twice"
    starts = [(text, start) for text, start in question.answers]
    if any(not text for text, _ in starts):
        yield "an empty answer"
    if any(start < 0 for _, start in starts):
        yield "an answer that begins before the text"
    if any(start >= len(question.context) for _, start in starts):
        yield "an answer that begins behind the text"
    inside = ((text, start) for text, start in starts if 0 <= start < len(question.context))
    if any(question.context[start : start + len(text)] != text for text, start in inside):
        yield "an answer that does not stand where it should"


def _label_faults(where: str, wrong: Iterable[tuple[int, int]], classes: int) -> Iterator[Fault]:
    for row, label in wrong:
        what = f"the label of row {row:,} (from 0) is {label} (labels go from 0 to {classes - 1})"
        yield Fault("DATA-LABEL", where, what)


def _outside(labels: Counter[int], classes: int) -> int:
    return sum(number for label, number in labels.items() if not 0 <= label < classes)
