"""What every data set is: rows of inputs with a class each, in a training and a test part, read block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Part = Literal["train", "test"]
PARTS: tuple[Part, Part] = ("train", "test")

Inputs = NDArray[Any]
"""[rows, *shape], in the narrow type in which the set is published."""
Targets = NDArray[np.int64]
"""[rows], classes counted from 0."""


@dataclass(frozen=True)
class Request:
    """Which data an experiment asks for.

    `name` is a named set or the path of a folder. `validation` is the share of the training rows that is held
    out. `limit`: use this many of the remaining training rows only; test rows are never cut.
    """

    name: str
    validation: float = 1 / 12
    limit: int | None = None


@dataclass(frozen=True)
class Split:
    """Rows in memory or mapped from a file: `inputs` [rows, *shape], `targets` [rows] int64."""

    inputs: Inputs
    targets: Targets


@dataclass(frozen=True)
class Facts:
    """What a source knows of itself without reading its rows.

    `where` is a path, or the generator and its settings. `shape` and `dtype` are of one row of inputs.
    """

    name: str
    origin: Literal["real", "generated"]
    where: str
    shape: tuple[int, ...]
    dtype: str
    classes: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Description:
    """A data set as a record names it.

    `digest` is a sha256 in hex over all training and test rows as read, so packed and unpacked files give the
    same; it is empty for a generated set that is not drawn yet. `rows` counts `train`, `validation` and `test`
    after the split. `notes` are odd but harmless findings, a sentence each.
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


class Source(ABC):
    """One data set that can be read from its beginning any number of times, in bounded memory."""

    @abstractmethod
    def facts(self) -> Facts:
        """What is known without reading the rows. Raises EscalaError where a header is wrong."""

    @abstractmethod
    def targets(self, part: Part) -> Targets:
        """Every row's class, in the order of the rows. Raises EscalaError for a class that cannot be."""

    @abstractmethod
    def blocks(self, part: Part) -> Iterator[Inputs]:
        """All rows in order, some at a time. Raises EscalaError where the data are damaged."""
