"""Film reviews for and against (Maas et al. 2011), as unpacked from aclImdb: a file a review, a folder a class."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from escala.data.base import PARTS, Part
from escala.data.paths import files_in, first_place, open_file
from escala.data.texts import Document, Labelled, TextFacts, TextSource
from escala.data.utf8 import lines
from escala.terms.errors import EscalaError

CLASSES = ("neg", "pos")
"""The folders of each part in the order of their numbers; reviews without a class, in `unsup`, are left out."""

_FOLDER = "aclImdb"
_ENDING = ".txt"


@dataclass(frozen=True)
class ReviewFolder(TextSource):
    """The tree `train/neg`, `train/pos`, `test/neg`, `test/pos` in `folder`; reviews in the order of their names."""

    name: str
    folder: Path
    told: str
    notes: tuple[str, ...] = ()

    def facts(self) -> TextFacts:
        """Raises EscalaError DATA-PATH where a folder of the tree is missing."""
        for part in PARTS:
            for label in CLASSES:
                files_in(self.folder / part / label)
        return TextFacts(self.name, "real", self.told, "labelled text", len(CLASSES), CLASSES, self.notes)

    def digest(self) -> str:
        """A sha256 in hex over all reviews with their classes, in order. Reads them all."""
        seen = hashlib.sha256()
        for part in PARTS:
            for label, path in self._files(part):
                with open_file(path) as file:
                    data = file.read()
                seen.update(f"{part} {label} {len(data)}\n".encode() + data)
        return seen.hexdigest()

    def documents(self, part: Part) -> Iterator[Document]:
        """Raises EscalaError DATA-ENC or DATA-EMPTY for a review, DATA-CLASS for a class without one, DATA-PATH."""
        for label, path in self._files(part):
            yield Labelled("".join(lines(path)), label)

    def _files(self, part: Part) -> Iterator[tuple[int, Path]]:
        for label, class_name in enumerate(CLASSES):
            folder = self.folder / part / class_name
            names = sorted(name for name in files_in(folder) if name.endswith(_ENDING))
            if not names:
                raise EscalaError(
                    "DATA-CLASS",
                    str(folder),
                    f"holds no review, so class {class_name} is empty in {part}",
                    expected=f"expected files that end in {_ENDING}",
                    next_step="unpack the archive again",
                )
            for name in names:
                yield label, folder / name


def find(name: str, environ: Mapping[str, str]) -> ReviewFolder | None:
    """The tree from the first of `places`, or a folder aclImdb there. Raises EscalaError DATA-PATH."""
    place = first_place(name, environ, lambda path: _tree(path) is not None)
    tree = place and _tree(place.path)
    if place is None or tree is None:
        return None
    told = place.told if tree == place.path else f"{place.told}/{tree.name}"
    return ReviewFolder(name, tree, told, place.notes)


def recognise(path: Path) -> ReviewFolder | None:
    """A folder with the tree, or with the folder aclImdb that holds it; None: something else."""
    tree = _tree(path) if path.is_dir() else None
    return ReviewFolder(path.name, tree, str(tree)) if tree else None


def _tree(path: Path) -> Path | None:
    for folder in (path, path / _FOLDER):
        # One folder of texts is enough to know it by; that all are there is asked later.
        if any(_has_texts(folder / part / label) for part in PARTS for label in CLASSES):
            return folder
    return None


def _has_texts(folder: Path) -> bool:
    return folder.is_dir() and any(name.endswith(_ENDING) for name in files_in(folder))
