"""What every data set is: rows of inputs with their targets, in parts as published, read block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Part = Literal["train", "validation", "test"]
PARTS: tuple[Part, Part] = ("train", "test")
"""The parts that every set has; some are published with rows for validation of their own."""

Kind = Literal["images", "labelled text", "text", "questions"]

Inputs = NDArray[Any]
"""[rows, *shape], in the narrow type in which the set is published; token numbers are int32."""
Targets = NDArray[np.int64]
"""[rows] of classes counted from 0; for `text` [rows, 1], how many tokens of the row are to be predicted; for
`questions` [rows, 3]: first and last token of the answer, and the question's number in the part's side file."""


@dataclass(frozen=True)
class Form:
    """What a workload wants its rows to be. Images are taken as they are stored; the rest is about text.

    `vocabulary`: how many different tokens at most; `length`: tokens of a row; `folder`: a pretrained model whose own
    vocabulary is taken.
    """

    kind: Kind = "images"
    tokenizer: Literal["", "bytes", "wordpiece"] = ""
    vocabulary: int = 0
    length: int = 0
    folder: str = ""


@dataclass(frozen=True)
class Request:
    """Which data an experiment asks for.

    `name` is a named set or the path of a file or folder. `validation` is the share of the training rows that is
    held out; None: the rows published for it, or else a twelfth. `limit`: use this many of the remaining training
    rows only; test rows are never cut.
    """

    name: str
    validation: float | None = None
    limit: int | None = None
    form: Form = Form()


@dataclass(frozen=True)
class Split:
    """Rows in memory or mapped from a file: `inputs` [rows, *shape], `targets` [rows, ...] int64.

    `side` is a file with what judging needs beside the targets, such as the texts of questions; None: nothing.
    """

    inputs: Inputs
    targets: Targets
    side: Path | None = None


@dataclass(frozen=True)
class Facts:
    """What a source knows of itself without reading its rows.

    `where` is a path, or the generator and its settings. `shape` and `dtype` are of one row of inputs. `classes`
    is 0 where targets are no classes. `padding` is the share of tokens that only fill rows up.
    """

    name: str
    origin: Literal["real", "generated"]
    where: str
    shape: tuple[int, ...]
    dtype: str
    classes: int
    notes: tuple[str, ...] = ()
    kind: Kind = "images"
    class_names: tuple[str, ...] = ()
    vocabulary: int = 0
    padding: float | None = None
    skipped: int = 0
    """Rows left out because they were damaged, where that was asked for."""


@dataclass(frozen=True)
class Description:
    """A data set as a record names it.

    `digest` is a sha256 in hex over all rows as read, so packed and unpacked files give the same; it is empty for
    a generated set that is not drawn yet. `rows` counts `train`, `validation` and `test` after the split. `notes`
    are odd but harmless findings, a sentence each. The rest as in `Facts`.
    """

    name: str
    origin: Literal["real", "generated"]
    where: str
    digest: str
    shape: tuple[int, ...]
    dtype: str
    classes: int
    rows: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    kind: Kind = "images"
    class_names: tuple[str, ...] = ()
    vocabulary: int = 0
    padding: float | None = None
    skipped: int = 0


class Source(ABC):
    """One data set that can be read from its beginning any number of times, in bounded memory."""

    @abstractmethod
    def facts(self) -> Facts:
        """What is known without reading the rows. Raises EscalaError where a header is wrong."""

    @abstractmethod
    def targets(self, part: Part) -> Targets:
        """Every row's targets, in the order of the rows. Raises EscalaError for a class that cannot be."""

    @abstractmethod
    def blocks(self, part: Part) -> Iterator[Inputs]:
        """All rows in order, some at a time. Raises EscalaError where the data are damaged."""

    def parts(self) -> tuple[Part, ...]:
        """The parts that it is published in."""
        return PARTS

    def side(self, part: Part) -> Iterator[bytes]:
        """What judging this part needs beside the targets, piece by piece; nothing for most sets."""
        del part
        return iter(())
