"""One folder of images for each class: which files there are, how classes are numbered, which part a file is in.

The layout is torchvision's ImageFolder: FOLDER/CLASS/*, or FOLDER/PART/CLASS/* with train beside validation or test
(https://docs.pytorch.org/vision/stable/generated/torchvision.datasets.ImageFolder.html). Classes are numbered by
their sorted names in the training part, and other parts are mapped by name, so that a class that one part lacks
shifts no number.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from escala.data.base import Part
from escala.data.image_scan import ENDINGS
from escala.data.paths import files_in, path_error
from escala.data.split import even_order
from escala.terms.errors import EscalaError

Shares = tuple[float, float, float]
"""Of train, validation and test; they sum to 1."""
SHARES: Shares = (0.85, 0.02, 0.13)

_PART_OF_WORD: dict[str, Part] = {
    "train": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
}
_NAMED = 10
"""Names that a sentence lists."""
_LOOKED_AT = 64
"""Names of a folder among which an image must be, so that to recognise a folder no million names are listed."""


@dataclass(frozen=True)
class ImageFile:
    """`path` is relative to the set's folder, with slashes; `label` is the number of its class."""

    path: str
    label: int


@dataclass(frozen=True)
class Tree:
    """All image files in order of their names. `divided`: in parts as they lie; otherwise all are in `train`.

    `wrong` says what is wrong with the classes, a sentence each.
    """

    folder: Path
    class_names: tuple[str, ...]
    parts: dict[Part, tuple[ImageFile, ...]]
    divided: bool
    notes: tuple[str, ...]
    wrong: tuple[str, ...]

    def checked(self) -> Tree:
        """Itself. Raises EscalaError DATA-CLASS where a class is empty, missing or unknown in a part."""
        if self.wrong:
            raise class_error(self.folder, "; ".join(self.wrong))
        return self


def holds_classes(folder: Path) -> bool:
    """Whether an image is seen in a folder of a class. Looks at few names; what can't be read holds none."""
    inside = [path for path in _some_of(folder) if path.is_dir() and not path.name.startswith(".")]
    parts = [path for path in inside if path.name.lower() in _PART_OF_WORD]
    classes = (path for part in parts for path in _some_of(part) if path.is_dir())
    return any(_is_image(path.name) for place in (*inside, *classes) for path in _some_of(place))


def read_tree(folder: Path, *, allow_empty: bool = False) -> Tree:
    """List a set. `allow_empty`: a class may have no image in a part; it keeps its number.

    Raises EscalaError DATA-PATH where a folder is missing, not readable or holds itself through a link, or where
    there are parts but no train, or train alone.
    """
    folders = _folders(folder)
    words = {word: _PART_OF_WORD[word.lower()] for word in folders if word.lower() in _PART_OF_WORD}
    # A class may be called `test`; a part holds folders.
    if not any(_folders(folder / word) for word in words):
        return _whole(folder, folders, allow_empty)
    others = [name for name in folders if name not in words]
    notes = (f"left out, since no part is called so: {_listed(others)}",) if others else ()
    by_part = {part: word for word, part in words.items()}
    if len(by_part) < len(words) or "train" not in by_part or len(by_part) == 1:
        raise path_error(
            folder,
            f"holds the parts {_listed(words)}",
            expected="expected train, and validation or test or both, one folder each",
            next_step="rename the folders, or put the classes of all parts together to have them split",
        )
    if "test" not in by_part:
        notes = (*notes, "no images for test are there: those for validation are used for it")
        by_part = {("test" if part == "validation" else part): word for part, word in by_part.items()}
    classes = {part: _folders(folder / word) for part, word in by_part.items()}
    names = classes["train"]
    wrong = list[str](_too_few(names))
    files = dict[Part, tuple[ImageFile, ...]]()
    for part, word in sorted(by_part.items(), key=lambda item: item[0] != "train"):
        files[part] = tuple(_files(folder, word, names))
        filled = {names[file.label] for file in files[part]}
        missing = [name for name in names if name not in filled]
        learnt = filled if part == "train" else {names[file.label] for file in files["train"]}
        unknown = [name for name in classes[part] if name not in names]
        # An empty folder of a class that is nowhere else is a class all the same: somebody has taken it for one.
        unlearnt = [name for name in names if name in filled and name not in learnt]
        if missing and not allow_empty:
            wrong.append(f"{word} has no image of {_listed(missing)}")
        if unknown or unlearnt:
            wrong.append(f"{word} has classes that train lacks: {_listed([*unknown, *unlearnt])}")
    return Tree(folder, tuple(names), files, True, notes, tuple(wrong))


def deal(
    tree: Tree, skipped: Collection[str], shares: Shares, seed: int
) -> tuple[dict[Part, tuple[ImageFile, ...]], tuple[str, ...]]:
    """The files of each part but the skipped ones, shuffled, and notes.

    A set that is not divided is split by `shares`, each class evenly: every part has its share of a class to within
    a row. The order depends on the names, the classes and the seed alone. Raises EscalaError DATA-CLASS where a class
    is left without a training row, CFG-RANGE where no row is left for train or test.
    """
    kept = {part: [file for file in files if file.path not in skipped] for part, files in tree.parts.items()}
    shuffled = {part: _shuffled(files, seed) for part, files in kept.items()}
    if not tree.divided:
        shuffled = _split(tree.folder, shuffled["train"], shares)
    for part in ("train", "test"):
        if not shuffled[part]:
            raise EscalaError(
                "CFG-RANGE",
                str(tree.folder),
                f"no image is left for {part}",
                expected="at least one for train and for test",
                next_step="add images or choose other shares",
            )
    there = {file.label for files in kept.values() for file in files}
    lost = sorted(there - {file.label for file in shuffled["train"]})
    if lost:
        raise class_error(
            tree.folder, f"no image is left in train of {_listed(tree.class_names[one] for one in lost)}"
        )
    notes = list[str]()
    for part, files in shuffled.items():
        lacking = sorted(there - {file.label for file in files})
        if lacking and not tree.divided:
            notes.append(f"{part} has too few rows for {_listed(tree.class_names[one] for one in lacking)}")
    return shuffled, tuple(notes)


def class_error(folder: Path, what: str) -> EscalaError:
    """DATA-CLASS for a set."""
    return EscalaError(
        "DATA-CLASS",
        str(folder),
        what,
        expected="images of every class in every part",
        next_step="add or remove folders; escala data prepare --allow-empty takes classes without images",
    )


def _whole(folder: Path, folders: Sequence[str], allow_empty: bool) -> Tree:
    files = tuple(_files(folder, "", folders))
    filled = {file.label for file in files}
    empty = [name for label, name in enumerate(folders) if label not in filled]
    wrong = [*_too_few(folders), *([f"no image of {_listed(empty)} is there"] if empty and not allow_empty else [])]
    return Tree(folder, tuple(folders), {"train": files}, False, (), tuple(wrong))


def _split(folder: Path, files: Sequence[ImageFile], shares: Shares) -> dict[Part, tuple[ImageFile, ...]]:
    if min(shares) < 0 or abs(sum(shares) - 1) > 1e-6:
        raise EscalaError("CFG-RANGE", str(folder), f"{shares} are no shares", expected="three that sum to 1")
    test = round(len(files) * shares[2])
    held_out = test + round(len(files) * shares[1])
    dealt: dict[Part, tuple[ImageFile, ...]] = {"train": tuple(files[held_out:]), "test": tuple(files[:test])}
    return dealt | {"validation": tuple(files[test:held_out])} if held_out > test else dealt


def _shuffled(files: Sequence[ImageFile], seed: int) -> tuple[ImageFile, ...]:
    if not files:
        return ()
    labels = np.array([file.label for file in files], np.int64)
    return tuple(files[number] for number in even_order(labels, seed).tolist())


def _too_few(classes: Sequence[str]) -> Iterator[str]:
    if len(classes) < 2:
        yield f"there is {f'one class only, {classes[0]}' if classes else 'no folder of a class'}"


def _files(folder: Path, word: str, classes: Sequence[str]) -> Iterator[ImageFile]:
    """The images of a part; classes that it lacks are passed over."""
    there = set(_folders(folder / word))
    for label, name in enumerate(classes):
        if name in there:
            inside = f"{word}/{name}" if word else name
            yield from (ImageFile(path, label) for path in _walk(folder, inside, ()))


def _walk(folder: Path, inside: str, above: tuple[tuple[int, int], ...]) -> Iterator[str]:
    place = folder / inside
    names = sorted(files_in(place))
    status = os.stat(place)
    here = (status.st_dev, status.st_ino)
    if here in above:
        raise path_error(place, "holds itself through a link", next_step="remove the link")
    for name in names:
        path = f"{inside}/{name}"
        if name.startswith("."):
            continue
        # No Path: to make one for each file would take longer than to list them.
        if os.path.isdir(f"{place}/{name}"):
            yield from _walk(folder, path, (*above, here))
        elif _is_image(name):
            yield path


def _folders(folder: Path) -> list[str]:
    """Names of the folders in a folder, sorted; hidden ones are nobody's class."""
    return sorted(name for name in files_in(folder) if not name.startswith(".") and os.path.isdir(folder / name))


def _is_image(name: str) -> bool:
    return name.lower().endswith(ENDINGS) and not name.startswith(".")


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - _NAMED:,} more" if len(every) > _NAMED else ""
    return ", ".join(every[:_NAMED]) + more


def _some_of(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            return sorted(Path(entry.path) for entry in islice(entries, _LOOKED_AT))
    except OSError:
        # Not seen to hold images, then; the reader that is asked last says what is wrong with the folder.
        return []
