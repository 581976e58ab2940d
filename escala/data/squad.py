"""SQuAD (Rajpurkar et al. 2016): questions on paragraphs of Wikipedia, answered by words that stand in them.

JSON as published: `data`, a list of articles with `paragraphs`, each a `context` with `qas`; an answer is its text
and the number of its first character. Version 2's questions without an answer, marked `is_impossible`, are taken,
too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from escala.data.base import PARTS, Part
from escala.data.check_text import wrong_with
from escala.data.paths import files_in, first_place, open_file, path_error
from escala.data.texts import Document, Question, TextFacts, TextSource
from escala.data.utf8 import decoded
from escala.terms.errors import EscalaError

FILES: tuple[dict[Part, str], ...] = (
    {"train": "train-v1.1.json", "test": "dev-v1.1.json"},
    {"train": "train-v2.0.json", "test": "dev-v2.0.json"},
)
"""The published files of either version; those for development are the test, as the test's own are not published."""

_TEST_EVERY = 20
_NAMED = 5
"""Questions that an error names."""
_LONGEST_ID = 40
"""Characters; the published ones have 24."""
_MARK = b"\xef\xbb\xbf"


class _Answer(msgspec.Struct, frozen=True):
    text: str
    answer_start: int


class _Asked(msgspec.Struct, frozen=True):
    id: str
    question: str
    answers: list[_Answer] = []
    is_impossible: bool = False


class _Paragraph(msgspec.Struct, frozen=True):
    context: str
    qas: list[_Asked]


class _Article(msgspec.Struct, frozen=True):
    paragraphs: list[_Paragraph]


class _Whole(msgspec.Struct, frozen=True):
    data: list[_Article]


@dataclass(frozen=True)
class SquadFiles(TextSource):
    """One file for each part; or one for both, of which every 20th paragraph is for the test."""

    name: str
    told: str
    files: Mapping[Part, Path]
    notes: tuple[str, ...] = ()

    def facts(self) -> TextFacts:
        split = () if "test" in self.files else (f"in one file: every {_TEST_EVERY}th paragraph is for the test",)
        return TextFacts(self.name, "real", self.told, "questions", notes=(*self.notes, *split))

    def digest(self) -> str:
        """A sha256 in hex over the files. Raises EscalaError DATA-PATH."""
        seen = hashlib.sha256()
        for part, path in self.files.items():
            data = _bytes(path)
            seen.update(f"{part} {len(data)}\n".encode() + data)
        return seen.hexdigest()

    def documents(self, part: Part) -> Iterator[Document]:
        """All questions, after a look at every one of the file.

        Raises EscalaError DATA-QA for what is no such JSON, with the place, and for questions that cannot be used,
        with ids by what is wrong with them; DATA-ENC, DATA-EMPTY, DATA-PATH.
        """
        path = self.files.get(part, self.files["train"])
        paragraphs = _read(path)
        _check(path, paragraphs)
        empty = True
        for number, paragraph in enumerate(paragraphs):
            if "test" in self.files or (number % _TEST_EVERY == _TEST_EVERY - 1) is (part == "test"):
                for asked in paragraph.qas:
                    empty = False
                    yield _question(asked, paragraph.context)
        if empty:
            expected = "" if "test" in self.files else f"expected at least {_TEST_EVERY} paragraphs"
            raise EscalaError(
                "DATA-EMPTY",
                str(path),
                f"holds no question for {part}",
                expected=expected,
                next_step="name data with more questions",
            )


def find(name: str, environ: Mapping[str, str]) -> SquadFiles | None:
    """The files from the first of `places`. Raises EscalaError DATA-PATH where one of the two is missing."""
    place = first_place(name, environ, lambda path: _version(files_in(path)) is not None)
    return place and _in_folder(name, place.path, place.told, place.notes)


def recognise(path: Path) -> SquadFiles | None:
    """A folder with the published files, one of these, or another file of the same JSON; None: something else.

    Raises EscalaError DATA-PATH where only one of the two published files is there.
    """
    if path.is_dir():
        known = _version(files_in(path)) is not None
        return _in_folder(path.name, path, str(path), ()) if known else None
    if not path.is_file() or path.suffix != ".json":
        return None
    names = files_in(path.parent)
    if any(path.name in files.values() and set(files.values()) <= names for files in FILES):
        version = next(files for files in FILES if path.name in files.values())
        return SquadFiles(path.stem, str(path), {part: path.parent / version[part] for part in PARTS})
    return SquadFiles(path.stem, str(path), {"train": path})


def _in_folder(name: str, folder: Path, told: str, notes: tuple[str, ...]) -> SquadFiles:
    names = files_in(folder)
    version = _version(names) or FILES[0]
    missing = [file for file in version.values() if file not in names]
    if missing:
        expected = f"expected the files {' and '.join(version.values())}"
        raise path_error(folder, f"holds no {missing[0]}", expected=expected)
    return SquadFiles(name, told, {part: folder / version[part] for part in PARTS}, notes)


def _version(names: set[str]) -> dict[Part, str] | None:
    """The first that is there whole, or else in part; None: neither."""
    whole = (files for files in FILES if set(files.values()) <= names)
    return next(whole, None) or next((files for files in FILES if names & set(files.values())), None)


def _read(path: Path) -> list[_Paragraph]:
    data = _bytes(path)
    if not data.strip():
        raise EscalaError("DATA-EMPTY", str(path), "holds nothing", next_step="fetch it again from its publisher")
    # Found out here, because a parser of JSON gives no line.
    decoded(data, path)
    try:
        whole = msgspec.json.decode(data.removeprefix(_MARK), type=_Whole)
    except msgspec.ValidationError as error:
        raise _fault(path, f"is not in the form of SQuAD: {error}") from error
    except RecursionError as error:
        raise _fault(path, "is no form of SQuAD: its brackets are too deep in each other") from error
    except msgspec.DecodeError as error:
        raise _fault(path, f"is no whole JSON: {error}") from error
    return [paragraph for article in whole.data for paragraph in article.paragraphs]


def _check(path: Path, paragraphs: list[_Paragraph]) -> None:
    """Raises EscalaError DATA-QA naming questions by what is wrong with them."""
    seen, wrong = set[str](), dict[str, list[str]]()
    for paragraph in paragraphs:
        for asked in paragraph.qas:
            found = [*wrong_with(_question(asked, paragraph.context), seen)]
            if not asked.answers and not asked.is_impossible:
                found.append('no answer and no mark "is_impossible"')
            if asked.answers and asked.is_impossible:
                found.append('an answer and the mark "is_impossible"')
            for what in found:
                wrong.setdefault(what, []).append(asked.id)
            seen.add(asked.id)
    if wrong:
        told = "; ".join(
            f"{what} ({len(ids):,}): {', '.join(map(_shown, ids[:_NAMED]))}{' and more' if len(ids) > _NAMED else ''}"
            for what, ids in wrong.items()
        )
        raise _fault(path, told)


def _shown(identity: str) -> str:
    """An id as a terminal can print it, whatever a file has for one."""
    short = identity if len(identity) <= _LONGEST_ID else f"{identity[:_LONGEST_ID]}..."
    return "".join(sign if sign.isprintable() else "?" for sign in short)


def _question(asked: _Asked, context: str) -> Question:
    # Version 2 names answers that only seem to be some elsewhere, so whatever stands here was meant.
    answers = tuple((answer.text, answer.answer_start) for answer in asked.answers)
    return Question(asked.id, asked.question, context, answers)


def _bytes(path: Path) -> bytes:
    with open_file(path) as file:
        return file.read()


def _fault(path: Path, what: str) -> EscalaError:
    return EscalaError(
        "DATA-QA",
        str(path),
        what,
        expected="expected SQuAD's JSON, answers being the words at their place in the context",
        next_step="put the file right, or fetch it again from its publisher",
    )
