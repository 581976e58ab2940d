"""A set of texts held in memory, for the tests of what is made of texts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from escala.data.base import PARTS, Kind, Part
from escala.data.texts import Document, TextFacts, TextSource


@dataclass
class ToldTexts(TextSource):
    """`told` by part; `read` counts how often the documents of a part were asked for."""

    kind: Kind
    told: Mapping[Part, Sequence[Document]]
    classes: int = 0
    read: list[Part] = field(default_factory=list)

    def facts(self) -> TextFacts:
        return TextFacts("told", "real", "memory", self.kind, self.classes)

    def digest(self) -> str:
        return hashlib.sha256(repr(self.told).encode()).hexdigest()

    def documents(self, part: Part) -> Iterator[Document]:
        self.read.append(part)
        return iter(self.told[part])

    def parts(self) -> tuple[Part, ...]:
        return (*PARTS, *(part for part in self.told if part not in PARTS))
