"""CIFAR-10 and CIFAR-100 (Krizhevsky 2009): small colour images in the two versions in which they are published.

Formats: https://www.cs.toronto.edu/~kriz/cifar.html. The python version is a pickle a file with the array `data`
[rows, 3072] and a list of labels; the binary version is one record a row, its label (for CIFAR-100 the coarse and
the fine one) before 3072 bytes. In both the 3072 are 32 x 32 of red, then of green, then of blue.
"""

from __future__ import annotations

import os
import reprlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from escala.data.base import PARTS, Facts, Inputs, Part, Source, Targets
from escala.data.paths import files_in, first_place, open_file, path_error
from escala.data.restricted_pickle import DamagedPickle, load
from escala.terms.errors import EscalaError

SHAPE = (3, 32, 32)
PIXELS = 3072

_ROWS_AT_ONCE = 512
_LONGEST_NAMES = 2**16
_LONGEST_NUMBER = 128
"""Bits of a number that is told as it is."""


@dataclass(frozen=True)
class Layout:
    """One version of one set: the `folder` it is published in, its files, and where labels and names stand in them.

    `rows` is how many each training or test file has as published. `label_bytes` is 0 for the python version, in
    which `labels` and `names` are keys; otherwise the class is the last of so many bytes before the pixels.
    """

    version: str
    folder: str
    files: Mapping[Part, tuple[str, ...]]
    rows: Mapping[Part, int]
    classes: int
    meta: str
    names: str = ""
    labels: str = ""
    label_bytes: int = 0

    @property
    def record(self) -> int:
        """Bytes of one row in the binary version."""
        return self.label_bytes + PIXELS

    @property
    def all_files(self) -> tuple[str, ...]:
        """Every file that has to be there."""
        return (*(name for part in PARTS for name in self.files[part]), self.meta)


_TEN: dict[Part, int] = {"train": 10_000, "test": 10_000}
_HUNDRED: dict[Part, int] = {"train": 50_000, "test": 10_000}

LAYOUTS: dict[str, tuple[Layout, Layout]] = {
    "cifar10": (
        Layout(
            "python",
            "cifar-10-batches-py",
            {"train": tuple(f"data_batch_{number}" for number in range(1, 6)), "test": ("test_batch",)},
            _TEN,
            10,
            "batches.meta",
            names="label_names",
            labels="labels",
        ),
        Layout(
            "binary",
            "cifar-10-batches-bin",
            {"train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)), "test": ("test_batch.bin",)},
            _TEN,
            10,
            "batches.meta.txt",
            label_bytes=1,
        ),
    ),
    "cifar100": (
        Layout(
            "python",
            "cifar-100-python",
            {"train": ("train",), "test": ("test",)},
            _HUNDRED,
            100,
            "meta",
            names="fine_label_names",
            labels="fine_labels",
        ),
        Layout(
            "binary",
            "cifar-100-binary",
            {"train": ("train.bin",), "test": ("test.bin",)},
            _HUNDRED,
            100,
            "fine_label_names.txt",
            label_bytes=2,
        ),
    ),
}
"""The python version first: it is taken where both are there."""


class _Batch(NamedTuple):
    pixels: NDArray[np.uint8]
    labels: Targets


@dataclass(frozen=True)
class Cifar(Source):
    """The files of one version in `folder`; rows [3, 32, 32] of unsigned bytes in the order of the files.

    A file of the python version is held in memory whole, about 0.5 GB at most for those published.
    """

    name: str
    layout: Layout
    folder: Path
    told: str
    notes: tuple[str, ...] = ()

    def facts(self) -> Facts:
        """Reads the names of the classes. Raises EscalaError DATA-PATH for a missing file, DATA-CIFAR for a damaged
        one, SEC-PICKLE for one that asks for more than arrays."""
        there = files_in(self.folder)
        missing = [name for name in self.layout.all_files if name not in there]
        if missing:
            raise path_error(
                self.folder,
                f"holds no {', '.join(missing)}",
                expected=f"expected the files {', '.join(self.layout.all_files)}",
                next_step="unpack the archive again",
            )
        names = _class_names(self.layout, self.folder / self.layout.meta)
        short = self._short_files() if self.layout.label_bytes else ()
        notes = (*self.notes, *short)
        return Facts(self.name, "real", self.told, SHAPE, "uint8", self.layout.classes, notes, class_names=names)

    def targets(self, part: Part) -> Targets:
        """Reads the labels. Raises EscalaError DATA-LABEL for one outside the classes, DATA-CIFAR, SEC-PICKLE."""
        found = [self._labels(self.folder / name) for name in self.layout.files[part]]
        return np.concatenate(found)

    def blocks(self, part: Part) -> Iterator[Inputs]:
        """Reads the images, 512 at a time. Raises EscalaError DATA-CIFAR, SEC-PICKLE, DATA-PATH."""
        for name in self.layout.files[part]:
            for batch in self._batches(self.folder / name):
                for first in range(0, len(batch.pixels), _ROWS_AT_ONCE):
                    yield np.ascontiguousarray(batch.pixels[first : first + _ROWS_AT_ONCE]).reshape(-1, *SHAPE)

    def _labels(self, path: Path) -> Targets:
        labels = np.concatenate([batch.labels for batch in self._batches(path)])
        wrong = np.flatnonzero((labels < 0) | (labels >= self.layout.classes))
        if len(wrong):
            what = f"the label of row {wrong[0]} (from 0) is {labels[wrong[0]]}; labels out of range: {len(wrong)}"
            raise _fault(path, what, f"labels go from 0 to {self.layout.classes - 1}", code="DATA-LABEL")
        return labels

    def _batches(self, path: Path) -> Iterator[_Batch]:
        if self.layout.label_bytes:
            return _records(self.layout, path)
        return iter([_pickled(self.layout, path)])

    def _short_files(self) -> Iterator[str]:
        """A sentence for each file with another number of rows than published: it may have been cut between two."""
        for part in PARTS:
            for name in self.layout.files[part]:
                rows = _rows(self.layout, self.folder / name)
                if rows != self.layout.rows[part]:
                    yield f"{name} holds {rows:,} images; {self.layout.rows[part]:,} are published"


def find(name: str, environ: Mapping[str, str]) -> Cifar | None:
    """The set called `name`, in its published folder or loose, from the first of `places` that has it; or None.

    Raises EscalaError DATA-PATH where `$ESCALA_DATA` is no readable folder.
    """
    place = first_place(name, environ, lambda path: bool(_located(path, LAYOUTS[name])))
    if place is None:
        return None
    return _chosen(name, place.path, place.told, _located(place.path, LAYOUTS[name]), place.notes)


def recognise(path: Path) -> Cifar | None:
    """A folder with either set, in its published folder or loose; None: something else."""
    found = _located(path, [layout for pair in LAYOUTS.values() for layout in pair])
    return _chosen(path.name, path, str(path), found, ()) if found else None


def _chosen(name: str, place: Path, told: str, found: list[tuple[Layout, Path]], notes: tuple[str, ...]) -> Cifar:
    layout, folder = found[0]
    others = (f"the {other.version} version of {other.classes} classes lies there, too" for other, _ in found[1:])
    notes = (
        *notes,
        *(f"{sentence}; the {layout.version} version of {layout.classes} is read" for sentence in others),
    )
    return Cifar(name, layout, folder, told if folder == place else f"{told}/{folder.name}", notes)


def _located(place: Path, layouts: list[Layout] | tuple[Layout, ...]) -> list[tuple[Layout, Path]]:
    """The versions that lie in `place` or in their published folders there; some of their files are enough."""
    if not place.is_dir():
        return []
    candidates = ((layout, folder) for layout in layouts for folder in (place, place / layout.folder))
    return [(layout, folder) for layout, folder in candidates if _has_some(layout, folder)]


def _has_some(layout: Layout, folder: Path) -> bool:
    if not folder.is_dir():
        return False
    there = [name for name in set(layout.all_files) & files_in(folder) if (folder / name).is_file()]
    # One file called `train` or `meta` may be anything.
    return len(there) >= (1 if folder.name == layout.folder else 2)


def _pickled(layout: Layout, path: Path) -> _Batch:
    """The rows of a file of the python version."""
    found = _load(path)
    pixels, labels = found.get("data"), found.get(layout.labels)
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 2 or pixels.dtype != np.uint8:
        raise _fault(path, "holds no array `data` of unsigned bytes, a row an image")
    if pixels.shape[1] != PIXELS or not len(pixels):
        raise _fault(path, f"its array `data` has the shape {pixels.shape}", f"(rows, {PIXELS}) was expected")
    if not isinstance(labels, list):
        raise _fault(
            path, f"holds no list `{layout.labels}`", f"it has {', '.join(sorted(found)) or 'nothing'}"[:200]
        )
    if len(labels) != len(pixels):
        raise _fault(path, f"holds {len(labels):,} labels", f"its array `data` has {len(pixels):,} rows")
    for row, label in enumerate(labels):
        # Larger ones would not fit into the array in which they are looked for.
        if type(label) is not int or not -(2**63) <= label < 2**63:
            what = f"the label of row {row} (from 0) is {_InShort().repr(label)[:40]}"
            raise _fault(path, what, f"labels go from 0 to {layout.classes - 1}", code="DATA-LABEL")
    return _Batch(pixels, np.array(labels, np.int64))


class _InShort(reprlib.Repr):
    """The first characters of a value: a file may hold lists in lists without end, and numbers that Python does not
    write out."""

    def repr_int(self, x: int, level: int) -> str:  # noqa: ARG002
        return str(x) if x.bit_length() <= _LONGEST_NUMBER else f"a number of {x.bit_length():,} bits"

    def repr_bytes(self, x: bytes, level: int) -> str:  # noqa: ARG002
        return repr(x[: self.maxstring])

    repr_bytearray = repr_bytes


def _records(layout: Layout, path: Path) -> Iterator[_Batch]:
    """The rows of a file of the binary version, some at a time."""
    left = _rows(layout, path)
    with open_file(path) as file:
        while left:
            wanted = min(left, _ROWS_AT_ONCE) * layout.record
            try:
                data = file.read(wanted)
            except OSError as error:
                raise _fault(path, f"cannot be read: {error.strerror}") from error
            if len(data) < wanted:
                raise _fault(path, f"ends after {file.tell():,} bytes, shorter than when it was opened")
            rows = np.frombuffer(data, np.uint8).reshape(-1, layout.record)
            left -= len(rows)
            yield _Batch(rows[:, layout.label_bytes :], rows[:, layout.label_bytes - 1].astype(np.int64))


def _rows(layout: Layout, path: Path) -> int:
    """How many rows a file of the binary version has. Raises EscalaError DATA-CIFAR where the last one is cut."""
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
    rows, rest = divmod(size, layout.record)
    if rest or not rows:
        published = next(layout.rows[part] for part in PARTS if path.name in layout.files[part]) * layout.record
        raise _fault(
            path,
            f"has {size:,} bytes, which is no number of whole images",
            f"{layout.record:,} bytes an image, {published:,} in all as published",
        )
    return rows


def _class_names(layout: Layout, path: Path) -> tuple[str, ...]:
    """The names of the classes in the order of their numbers."""
    if layout.label_bytes:
        with open_file(path) as file:
            found: object = file.read(_LONGEST_NAMES).split()
    else:
        found = _load(path).get(layout.names)
    lines = found if isinstance(found, list) else []
    names = tuple(_name(path, line) for line in lines)
    if len(names) != layout.classes:
        raise _fault(path, f"holds {len(names)} names of classes", f"{layout.classes} were expected")
    return names


def _name(path: Path, value: object) -> str:
    try:
        name = value.decode("utf-8") if isinstance(value, bytes) else value
    except UnicodeDecodeError as error:
        raise _fault(path, f"the name of a class is no UTF-8: {error}") from error
    if not isinstance(name, str):
        raise _fault(path, f"holds a {type(name).__name__} where the name of a class was expected")
    return name


def _load(path: Path) -> dict[str, object]:
    try:
        return load(path)
    except DamagedPickle as error:
        with open_file(path) as file:
            size = os.fstat(file.fileno()).st_size
        raise _fault(path, f"{error}; the file has {size:,} bytes") from error


def _fault(path: Path, what: str, expected: str = "", *, code: str = "DATA-CIFAR") -> EscalaError:
    next_step = "fetch the file again from its publisher"
    return EscalaError(code, str(path), what, expected=expected, next_step=next_step)
