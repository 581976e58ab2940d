"""A folder of images as a set of rows, where all images have one size and mode. See `image_tree` for the layout."""

from __future__ import annotations

import os
import shlex
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from escala.data.base import PARTS, Facts, Inputs, Part, Source, Targets
from escala.data.checked import Fault, Faults, PartFacts, Progress, Scan
from escala.data.image_scan import BAD, Header, look_through, read_header, read_pixels
from escala.data.image_tree import SHARES, ImageFile, Shares, Tree, deal, holds_classes, read_tree
from escala.terms.errors import EscalaError

OnBad = Literal["fail", "skip"]

MOST_SKIPPED = 0.01
"""The share of a set's files that may be left out as damaged."""
_AT_ONCE = 64
_THREADS = 4
_SIZES_NAMED = 5
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class ImageFolder(Source):
    """The images below `folder`: rows [height, width] where they are grey, else [3, height, width]; unsigned bytes.

    `on_bad` "skip": every file is decoded once before anything else, and the damaged ones are left out.
    `allow_empty`: a class may have no image in a part. `shares` and `seed` split a folder that is not in parts.
    Files are listed and looked at once for each object.
    """

    name: str
    folder: Path
    on_bad: OnBad = "fail"
    allow_empty: bool = False
    shares: Shares = SHARES
    seed: int = 0

    def facts(self) -> Facts:
        """Reads every header. Raises EscalaError DATA-PATH, DATA-CLASS, DATA-HUGE, DATA-IMG also for unlike sizes."""
        header, tree = self._header, self._tree
        shape = (header.height, header.width) if header.grey else (3, header.height, header.width)
        notes = (*tree.notes, *self._dealt[1])
        names, skipped = tree.class_names, len(self.skipped)
        where = str(self.folder)
        return Facts(self.name, "real", where, shape, "uint8", len(names), notes, class_names=names, skipped=skipped)

    def parts(self) -> tuple[Part, ...]:
        return (*PARTS, *(part for part in self._dealt[0] if part not in PARTS))

    def targets(self, part: Part) -> Targets:
        """The classes of the files. Raises EscalaError DATA-PATH, DATA-CLASS."""
        return np.array([file.label for file in self._dealt[0][part]], np.int64)

    def blocks(self, part: Part) -> Iterator[Inputs]:
        """Decodes the images, 64 at a time, by a few threads. Raises EscalaError DATA-IMG, DATA-HUGE, DATA-PATH."""
        header, files = self._header, self._dealt[0][part]

        def block(first: int) -> Inputs:
            return np.stack([self._row(file, header) for file in files[first : first + _AT_ONCE]])

        return _ahead(block, range(0, len(files), _AT_ONCE), _THREADS)

    def scan(self, faults: Faults, progress: Progress, *, strict: bool) -> Scan:
        """Decode every file, and go on where one is damaged. `strict`: what is odd is a fault, too.

        Raises EscalaError DATA-PATH where the folder cannot be listed.
        """
        tree = self._unchecked
        for sentence in tree.wrong:
            faults.add(Fault("DATA-CLASS", str(self.folder), sentence))
        parts = tree.parts
        if not tree.divided:
            with faults.kept():
                parts = deal(tree, (), self.shares, self.seed)[0]
        sizes = Counter[str]()
        found = tuple(self._scan_part(part, files, faults, sizes, progress, strict) for part, files in parts.items())
        return Scan(found, tree.class_names, dict(sizes.most_common()))

    @cached_property
    def skipped(self) -> tuple[str, ...]:
        """Paths of the files left out, relative and sorted; none unless `on_bad` is "skip".

        Raises EscalaError DATA-IMG where they are more than one in a hundred.
        """
        if self.on_bad == "fail":
            return ()
        files = [file for files in self._tree.parts.values() for file in files]

        def look(file: ImageFile) -> EscalaError | None:
            try:
                look_through(self.folder / file.path, self._class(file), strict=False)
            except EscalaError as error:
                if error.code not in BAD:
                    raise
                return error
            return None

        looked = zip(files, _ahead(look, files, _THREADS), strict=True)
        bad = {file.path: error for file, error in looked if error is not None}
        check_skipped(self.folder, bad, len(files))
        return tuple(sorted(bad))

    @cached_property
    def _unchecked(self) -> Tree:
        return read_tree(self.folder, allow_empty=self.allow_empty)

    @cached_property
    def _tree(self) -> Tree:
        return self._unchecked.checked()

    @cached_property
    def _dealt(self) -> tuple[dict[Part, tuple[ImageFile, ...]], tuple[str, ...]]:
        return deal(self._tree, frozenset(self.skipped), self.shares, self.seed)

    @cached_property
    def _header(self) -> Header:
        """The one size and mode of all files."""
        files = [file for files in self._dealt[0].values() for file in files]

        def read(file: ImageFile) -> Header:
            return read_header(self.folder / file.path, self._class(file))

        found = Counter(_ahead(read, files, _THREADS)).most_common()
        if len(found) > 1:
            sizes = ", ".join(f"{count:,} of {header}" for header, count in found[:_SIZES_NAMED])
            more = f" and {len(found) - _SIZES_NAMED:,} more sizes" if len(found) > _SIZES_NAMED else ""
            usual = found[0][0]
            grey = " --grey" if all(header.grey for header, _ in found) else ""
            command = f"escala data prepare {shlex.quote(str(self.folder))} --size {usual.width}x{usual.height}{grey}"
            raise EscalaError(
                "DATA-IMG",
                str(self.folder),
                f"its images are not alike: {sizes}{more}",
                expected="one size and mode",
                next_step=f"bring them to one, which any WxH may be: {command} --out FILE",
            )
        return found[0][0]

    def _row(self, file: ImageFile, header: Header) -> Inputs:
        row = read_pixels(self.folder / file.path, self._class(file), grey=header.grey)
        if row.shape[-2:] != (header.height, header.width):
            raise EscalaError(
                "DATA-CHANGED",
                str(self.folder / file.path),
                f"is now {row.shape[-1]}x{row.shape[-2]}",
                expected=f"{header}, as it was a moment ago",
                next_step="give the same command again once nothing writes there",
            )
        return row

    def _scan_part(
        self,
        part: Part,
        files: Sequence[ImageFile],
        faults: Faults,
        sizes: Counter[str],
        progress: Progress,
        strict: bool,
    ) -> PartFacts:
        def look(file: ImageFile) -> tuple[Header, tuple[str, ...]] | EscalaError:
            try:
                return look_through(self.folder / file.path, self._class(file), strict=strict)
            except EscalaError as error:
                return error

        threads = 1 if strict else _THREADS
        for number, (file, seen) in enumerate(zip(files, _ahead(look, files, threads), strict=True), 1):
            if isinstance(seen, EscalaError):
                with faults.kept():
                    raise seen
            else:
                sizes[str(seen[0])] += 1
                for sentence in seen[1]:
                    what = f"an image of class {self._class(file)}: {sentence}"
                    faults.add(Fault("DATA-IMG", str(self.folder / file.path), what))
            if number % _AT_ONCE == 0 or number == len(files):
                progress(part, number, len(files))
        labels = np.array([file.label for file in files], np.int64)
        classes = len(self._unchecked.class_names)
        return PartFacts(part, len(files), tuple(np.bincount(labels, minlength=classes).tolist()))

    def _class(self, file: ImageFile) -> str:
        return self._unchecked.class_names[file.label]


def recognise(path: Path) -> ImageFolder | None:
    """The set in a folder with a folder of images for each class; None: no such folders are seen."""
    return ImageFolder(path.name, path) if path.is_dir() and holds_classes(path) else None


def check_skipped(folder: Path, bad: dict[str, EscalaError], files: int) -> None:
    """Raises EscalaError DATA-IMG where more than one file in a hundred is damaged."""
    if len(bad) > MOST_SKIPPED * files:
        first = min(bad)
        raise EscalaError(
            "DATA-IMG",
            str(folder),
            f"{len(bad):,} of {files:,} images are damaged; the first is {first}: {bad[first].what}",
            expected=f"at most {MOST_SKIPPED:.0%} are left out",
            next_step="see all of them with escala data check, and put whole files there",
        )


def _ahead(work: Callable[[T], U], items: Collection[T], threads: int) -> Iterator[U]:
    """`work` of each item in order, by a few threads that are never far ahead of the reader."""
    threads = min(threads, os.cpu_count() or 1)
    waiting: deque[Future[U]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="images") as pool:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
