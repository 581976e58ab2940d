"""MNIST and the sets published in its form: four IDX files in a folder, grey images and labels from 0 to 9."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from escala.data.base import Facts, Inputs, Part, Source, Targets
from escala.data.idx import Idx, read_blocks, read_header
from escala.data.paths import files_in, first_place, path_error
from escala.terms.errors import EscalaError

CLASSES = 10
IMAGES: dict[Part, str] = {"train": "train-images-idx3-ubyte", "test": "t10k-images-idx3-ubyte"}
LABELS: dict[Part, str] = {"train": "train-labels-idx1-ubyte", "test": "t10k-labels-idx1-ubyte"}
PACKED = ".gz"


@dataclass(frozen=True)
class IdxFolder(Source):
    """The four files in `folder`, each there with or without `.gz`, as the set called `name`."""

    name: str
    folder: Path
    notes: tuple[str, ...] = ()
    told: str = ""
    """Where it lies, for records: they travel, and whose folders lie where is nobody's business."""

    def facts(self) -> Facts:
        """Reads the four headers. Raises EscalaError DATA-PATH for a missing file, DATA-IDX where they disagree."""
        train, test = self._images("train"), self._images("test")
        if train.shape[1:] != test.shape[1:]:
            raise EscalaError(
                "DATA-IDX",
                str(test.path),
                f"holds images of {_by(test.shape[1:])} pixels",
                expected=f"{train.path.name} holds {_by(train.shape[1:])}",
                next_step="put the files of one set into the folder",
            )
        headers = [train, self._labels("train", train), test, self._labels("test", test)]
        notes = (*self.notes, *(note for header in headers for note in _packing_note(header)))
        return Facts(self.name, "real", self.told or str(self.folder), train.shape[1:], "uint8", CLASSES, notes)

    def targets(self, part: Part) -> Targets:
        """Reads the labels. Raises EscalaError DATA-LABEL for one above 9, DATA-IDX for a damaged file."""
        header = self._labels(part, self._images(part))
        labels = np.concatenate(list(read_blocks(header)))
        wrong = np.flatnonzero(labels >= CLASSES)
        if len(wrong):
            raise EscalaError(
                "DATA-LABEL",
                str(header.path),
                f"the label of row {wrong[0]} (from 0) is {labels[wrong[0]]}; labels out of range: {len(wrong)}",
                expected=f"labels go from 0 to {CLASSES - 1}",
                next_step="fetch the file again from its publisher",
            )
        return labels.astype(np.int64)

    def blocks(self, part: Part) -> Iterator[Inputs]:
        """Reads the images. Raises EscalaError DATA-IDX for a damaged file."""
        return read_blocks(self._images(part))

    def _images(self, part: Part) -> Idx:
        return read_header(self._file(IMAGES[part]), 3)

    def _labels(self, part: Part, images: Idx) -> Idx:
        header = read_header(self._file(LABELS[part]), 1)
        if header.shape[0] != images.shape[0]:
            raise EscalaError(
                "DATA-IDX",
                f"{header.path}, byte 4",
                f"the header counts {header.shape[0]:,} labels",
                expected=f"{images.path.name} counts {images.shape[0]:,} images",
                next_step="put the files of one set into the folder",
            )
        return header

    def _file(self, name: str) -> Path:
        found = files_in(self.folder) & {name, name + PACKED}
        if not found:
            raise path_error(
                self.folder,
                f"holds no {name}, packed ({PACKED}) or not",
                expected=f"expected the files {', '.join([*IMAGES.values(), *LABELS.values()])}",
            )
        return self.folder / min(found)


def in_folder(folder: Path) -> IdxFolder:
    """The set in the folder that a person named, called like the folder. Raises EscalaError DATA-PATH."""
    files_in(folder)
    return IdxFolder(folder.name, folder)


def find(name: str, environ: Mapping[str, str]) -> IdxFolder | None:
    """The set called `name` from the first of `places` with any of its files; None where no place has one.

    Raises EscalaError DATA-PATH where `$ESCALA_DATA` is no readable folder: who sets it means it.
    """
    place = first_place(name, environ, _has_any)
    return place and IdxFolder(name, place.path, place.notes, place.told)


def _has_any(folder: Path) -> bool:
    names = files_in(folder)
    return any({name, name + PACKED} & names for name in (*IMAGES.values(), *LABELS.values()))


def _packing_note(header: Idx) -> tuple[str, ...]:
    """A sentence if the file's name hides whether it is packed."""
    name = header.path.name
    if header.packed and not name.endswith(PACKED):
        return (f"{name} holds gzip data without {PACKED}: read as gzip",)
    if not header.packed and name.endswith(PACKED):
        return (f"{name} holds no gzip data in spite of {PACKED}: read as it is",)
    return ()


def _by(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape))
