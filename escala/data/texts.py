"""What every set of texts is, before it is cut into tokens: documents in parts as published, read one by one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from escala.data.base import PARTS, Kind, Part


@dataclass(frozen=True)
class Labelled:
    """A text with its class, counted from 0."""

    text: str
    label: int


@dataclass(frozen=True)
class Question:
    """A question about a text, with accepted answers as (text, first character in the context).

    No answers: the context holds none, which the set must allow (`impossible`).
    """

    id: str
    question: str
    context: str
    answers: tuple[tuple[str, int], ...]


Document: TypeAlias = str | Labelled | Question
"""`text` gives strings, a paragraph or a file each with its line ends; the other kinds give theirs."""


@dataclass(frozen=True)
class TextFacts:
    """What a set of texts knows of itself without reading it whole; `classes` 0 where there are none."""

    name: str
    origin: Literal["real", "generated"]
    where: str
    kind: Kind
    classes: int = 0
    class_names: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class TextSource(ABC):
    """One set of texts that can be read from its beginning any number of times, in bounded memory."""

    @abstractmethod
    def facts(self) -> TextFacts:
        """What is known without reading all texts. Raises EscalaError."""

    @abstractmethod
    def digest(self) -> str:
        """A sha256 in hex over the content, or for a generated set over its settings: names the encoded cache."""

    @abstractmethod
    def documents(self, part: Part) -> Iterator[Document]:
        """All documents of a part in order. Raises EscalaError DATA-ENC, DATA-EMPTY or DATA-QA where wrong."""

    def parts(self) -> tuple[Part, ...]:
        """The parts that it is published in."""
        return PARTS
