"""What is known of a data set once it was read from beginning to end: plain data, and the list of its faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol, TypeAlias, runtime_checkable

from escala.terms.errors import EscalaError

MOST = 20
"""Faults that are kept in words; the others are counted."""

Progress: TypeAlias = Callable[[str, int, int | None], None]
"""Is told of a part: its name, the rows read, and the rows in all where that is known."""


@dataclass(frozen=True)
class Fault:
    """A thing that is wrong, of a kind (`code`), in a place; `count` like it are meant."""

    code: str
    where: str
    what: str
    count: int = 1


@dataclass(frozen=True)
class PartFacts:
    """What a part holds: rows or documents, rows of each class, and further figures by name."""

    part: str
    rows: int
    per_class: tuple[int, ...] = ()
    figures: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Checked:
    """A data set after a whole reading.

    `digest` is a sha256 in hex over all rows, empty where not all could be read. `shape` and `dtype` are of one row
    of inputs, None for texts; `low` and `high` are the least and the greatest value of all inputs. `sizes` says of
    files of images how many have each size and mode. `faults` are the first ones, `fault_count` is their number.
    """

    name: str
    origin: str
    where: str
    kind: str
    digest: str
    classes: int
    class_names: tuple[str, ...]
    shape: tuple[int, ...] | None
    dtype: str | None
    parts: tuple[PartFacts, ...]
    faults: tuple[Fault, ...]
    fault_count: int
    notes: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    sizes: dict[str, int] = field(default_factory=dict)
    skipped: int = 0

    @property
    def sound(self) -> bool:
        """Whether nothing is wrong."""
        return self.fault_count == 0


@dataclass
class Faults:
    """Grows while a set is read."""

    first: list[Fault] = field(default_factory=list)
    count: int = 0

    def add(self, fault: Fault) -> None:
        """Count a fault, and keep it in words while there is room."""
        self.add_all((fault,), fault.count)

    def add_all(self, faults: Iterable[Fault], count: int) -> None:
        """Count so many faults, and keep the first in words while there is room; no more of them are made."""
        self.count += count
        self.first += islice(faults, MOST - len(self.first))

    def kept(self, told: set[Fault] | None = None) -> _Kept:
        """Take an EscalaError DATA-* for a fault, and go on. All others are no fault of the data, and pass.

        What is in `told` is not counted once more; what is counted is put there.
        """
        return _Kept(self, set() if told is None else told)


@dataclass(frozen=True)
class _Kept:
    # Written out, since type checkers believe of a generator's context that it never ends an exception.
    faults: Faults
    told: set[Fault]

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, EscalaError) or not error.code.startswith("DATA-"):
            return False
        expected = f" ({error.expected})" if error.expected else ""
        fault = Fault(error.code, error.where, f"{error.what}{expected}")
        if fault not in self.told:
            self.told.add(fault)
            self.faults.add(fault)
        return True


@dataclass(frozen=True)
class Scan:
    """What was found by looking at each file: rows by part and class, and how many files are of each size."""

    parts: tuple[PartFacts, ...]
    class_names: tuple[str, ...]
    sizes: dict[str, int]


@runtime_checkable
class Scanned(Protocol):
    """A source of many files, which can look at each of them and go on where one is damaged."""

    def scan(self, faults: Faults, progress: Progress, *, strict: bool) -> Scan:
        """Look at every file; what is wrong goes to `faults`. `strict`: what a decoder warns of, too."""


def class_name(names: Sequence[str], label: int) -> str:
    """A class as a person calls it: its name, or its number where classes have none."""
    return names[label] if label < len(names) else str(label)
