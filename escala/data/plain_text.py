"""Running text: WikiText as published, any files of UTF-8, Debian's sayings and WordNet's definitions.

WikiText (Merity et al. 2016) has three files, for training, validation and test, and an article is a document. The
others are published in one piece: every 20th document is for the test, wherever it stands, so both parts are alike.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from escala.data.base import PARTS, Part
from escala.data.paths import Place, files_in, first_place, is_missing, open_file, path_error
from escala.data.texts import Document, TextFacts, TextSource
from escala.data.utf8 import lines
from escala.terms.errors import EscalaError

TEXT_ENDINGS = (".txt", ".md", ".tokens", ".raw")
FORTUNES = Path("/usr/share/games/fortunes")
"""Where Debian's package puts the sayings."""
WORDNET = Path("/usr/share/wordnet")
"""Where Debian's package puts the dictionary."""

_WIKI: dict[Part, str] = {"train": "wiki.train", "validation": "wiki.valid", "test": "wiki.test"}
_WIKI_ENDINGS = (".tokens", ".raw")
_TITLE = re.compile(r" = [^=].* = \s*")
_WORDNET_FILES = ("data.adj", "data.adv", "data.noun", "data.verb")
_TEST_EVERY = 20
_LONGEST = 4_000
"""Characters after which a paragraph ends with the line: a file may have a sentence a line and no empty line."""
_LONGEST_ARTICLE = 1_000_000
_BEGINNING = 4096
_AT_ONCE = 1 << 20
_IDX = ("-ubyte", "-ubyte.gz")

Reader = Callable[[Iterable[str]], Iterator[str]]
"""Makes documents of the lines of a file."""


@dataclass(frozen=True)
class TextFiles(TextSource):
    """Files by part; with those of `train` alone, every 20th document of theirs is for the test."""

    name: str
    told: str
    files: Mapping[Part, tuple[Path, ...]]
    read: Reader
    notes: tuple[str, ...] = ()

    def facts(self) -> TextFacts:
        split = (
            () if self._published else (f"published in one piece: every {_TEST_EVERY}th document is for the test",)
        )
        return TextFacts(self.name, "real", self.told, "text", notes=(*self.notes, *split))

    def digest(self) -> str:
        """A sha256 in hex over the files by part and how they are read. Raises EscalaError DATA-PATH."""
        seen = hashlib.sha256(self.read.__name__.encode())
        for part, paths in self.files.items():
            for path in paths:
                content = hashlib.sha256()
                with open_file(path) as file:
                    while piece := file.read(_AT_ONCE):
                        content.update(piece)
                seen.update(f"\n{part} {content.hexdigest()}".encode())
        return seen.hexdigest()

    def documents(self, part: Part) -> Iterator[Document]:
        """Raises EscalaError DATA-ENC where a file is no UTF-8, DATA-EMPTY for a file or part without text."""
        empty = True
        for number, document in enumerate(self._all(part)):
            if self._published or (number % _TEST_EVERY == _TEST_EVERY - 1) is (part == "test"):
                empty = False
                yield document
        if empty:
            fewest = "" if self._published else f"expected at least {_TEST_EVERY} paragraphs"
            step = "name data with more text"
            raise EscalaError("DATA-EMPTY", self.told, f"holds no text for {part}", expected=fewest, next_step=step)

    def parts(self) -> tuple[Part, ...]:
        return tuple(self.files) if self._published else PARTS

    @property
    def _published(self) -> bool:
        return "test" in self.files

    def _all(self, part: Part) -> Iterator[str]:
        paths = self.files[part] if self._published else self.files["train"]
        return chain.from_iterable(self.read(lines(path)) for path in paths)


def paragraphs(found: Iterable[str]) -> Iterator[str]:
    """Lines up to an empty one, which is left out, or up to the first line end behind 4,000 characters."""
    return _gathered(found, ends=lambda line: not line.strip(), longest=_LONGEST)


def sayings(found: Iterable[str]) -> Iterator[str]:
    """What stands between lines with nothing but a per cent sign, as in files for `fortune`."""
    return _gathered(found, ends=lambda line: line.rstrip("\r\n") == "%", longest=_LONGEST_ARTICLE)


def articles(found: Iterable[str]) -> Iterator[str]:
    """WikiText's articles, each from its title on: a line with one sign of equality on either side."""
    article, size = list[str](), 0
    for line in found:
        if article and (_TITLE.fullmatch(line) or size > _LONGEST_ARTICLE):
            yield "".join(article)
            article, size = [], 0
        # The files begin with an empty line, which belongs to no article.
        if article or line.strip():
            article.append(line)
            size += len(line)
    if article:
        yield "".join(article)


def definitions(found: Iterable[str]) -> Iterator[str]:
    """The gloss of each of WordNet's sets of synonyms: what follows the bar in its line (wndb(5WN))."""
    for line in found:
        # Lines of the licence begin with a space.
        _, bar, gloss = line.partition("| ")
        if bar and gloss.strip() and not line.startswith(" "):
            yield gloss.strip()


def find_wikitext(name: str, environ: Mapping[str, str]) -> TextFiles | None:
    """`wikitext-103` or `wikitext-2` from the first of `places`. Raises EscalaError DATA-PATH."""
    place = first_place(name, environ, lambda path: _wiki_ending(files_in(path)) is not None)
    return place and _wikitext(name, place)


def find_fortunes(name: str, environ: Mapping[str, str]) -> TextFiles | None:
    """The sayings from the first of `places`, or Debian's. Raises EscalaError DATA-PATH."""
    place = first_place(name, environ, _holds_sayings) or _debian(FORTUNES, _holds_sayings)
    if place is None:
        return None
    return TextFiles(name, place.told, {"train": _sayings_in(place.path)}, sayings, place.notes)


def find_wordnet(name: str, environ: Mapping[str, str]) -> TextFiles | None:
    """The definitions from the first of `places`, or Debian's. Raises EscalaError DATA-PATH."""
    place = first_place(name, environ, _holds_wordnet) or _debian(WORDNET, _holds_wordnet)
    if place is None:
        return None
    files = tuple(place.path / file for file in _WORDNET_FILES)
    return TextFiles(name, place.told, {"train": files}, definitions, place.notes)


def recognise_wikitext(path: Path) -> TextFiles | None:
    """A folder with WikiText's three files. Raises EscalaError DATA-PATH where one is missing."""
    if path.is_dir() and _wiki_ending(files_in(path)) is not None:
        return _wikitext(path.name, Place(path, str(path), ()))
    return None


def recognise(path: Path) -> TextFiles | None:
    """A file of text, or a folder with some below it; None: something else. Asked last, since much is text.

    Hidden files and folders are nobody's text; links to folders are not followed.
    """
    if path.is_file():
        if path.suffix.lower() in TEXT_ENDINGS or _begins_as_text(path):
            return TextFiles(path.stem, str(path), {"train": (path,)}, paragraphs)
    elif path.is_dir() and not any(name.endswith(_IDX) for name in files_in(path)):
        files = tuple(sorted(file for file in path.rglob("*") if _is_named_text(file, path)))
        if files:
            return TextFiles(path.name, str(path), {"train": files}, paragraphs)
    return None


def _gathered(found: Iterable[str], ends: Callable[[str], bool], longest: int) -> Iterator[str]:
    document, size = list[str](), 0
    for line in found:
        end = ends(line)
        if not end:
            document.append(line)
            size += len(line)
        if document and (end or size > longest):
            text = "".join(document)
            document, size = [], 0
            if text.strip():
                yield text
    if (text := "".join(document)).strip():
        yield text


def _wikitext(name: str, place: Place) -> TextFiles:
    names = files_in(place.path)
    ending = _wiki_ending(names)
    missing = [f"{stem}{ending}" for stem in _WIKI.values() if f"{stem}{ending}" not in names]
    if missing:
        expected = f"expected the files {', '.join(f'{stem}{ending}' for stem in _WIKI.values())}"
        raise path_error(place.path, f"holds no {missing[0]}", expected=expected)
    files: dict[Part, tuple[Path, ...]] = {part: (place.path / f"{stem}{ending}",) for part, stem in _WIKI.items()}
    return TextFiles(name, place.told, files, articles, place.notes)


def _wiki_ending(names: set[str]) -> str | None:
    return next((ending for ending in _WIKI_ENDINGS if f"{_WIKI['train']}{ending}" in names), None)


def _debian(folder: Path, holds: Callable[[Path], bool]) -> Place | None:
    return Place(folder, str(folder), ()) if not is_missing(folder) and holds(folder) else None


def _holds_sayings(folder: Path) -> bool:
    names = files_in(folder)
    # The index beside each file is what tells such a folder from any other.
    return any("." not in name and f"{name}.dat" in names for name in names)


def _sayings_in(folder: Path) -> tuple[Path, ...]:
    names = files_in(folder)
    return tuple(folder / name for name in sorted(names) if "." not in name and f"{name}.dat" in names)


def _holds_wordnet(folder: Path) -> bool:
    return set(_WORDNET_FILES) <= files_in(folder)


def _is_named_text(path: Path, folder: Path) -> bool:
    """Whether a name below `folder` is that of a text; one that cannot be read is kept, so that it is an error."""
    hidden = any(name.startswith(".") for name in path.relative_to(folder).parts)
    return path.suffix.lower() in TEXT_ENDINGS and not hidden and not path.is_dir()


def _begins_as_text(path: Path) -> bool:
    """Whether a file whose name does not tell begins with UTF-8."""
    with open_file(path) as file:
        data = file.read(_BEGINNING)
    if not data or b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError as error:
        # The last character may be cut.
        return len(data) == _BEGINNING and error.start > _BEGINNING - 4
    return True
