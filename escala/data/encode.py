"""A set of texts as rows of token numbers, cut once for a whole machine into a folder of the cache.

An entry is named by the texts' digest, the form and the vocabulary, so it is made anew where one of them changes.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from escala.data.arrays import ArrayFile
from escala.data.base import Facts, Form, Inputs, Part, Source, Targets
from escala.data.entry import kept
from escala.data.manifest import FileCheck, Manifest, write_manifest
from escala.data.texts import Labelled, Question, TextFacts, TextSource
from escala.terms.errors import EscalaError

if TYPE_CHECKING:
    from escala.data.cut import Rows, Tally
    from escala.data.tokens import Vocabulary

_LAYOUT = 1
"""Raised when the rows of the same texts change, so that older entries are left alone."""
_SHORTEST = {"text": 1, "labelled text": 2, "questions": 8}
_CUT, _TOKENIZER = "cut.json", "tokenizer.json"
_BLOCK_BYTES = 1 << 20


class Cut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of an entry: the vocabulary's size, the share of padding, rows by part, sentences."""

    vocabulary: int
    padding: float
    rows: dict[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Encoded(Source):
    """The rows in a folder of the cache, mapped from their files. Raises EscalaError DATA-CACHE for a damaged one."""

    texts: TextFacts
    form: Form
    folder: Path
    cut: Cut

    def facts(self) -> Facts:
        texts, length = self.texts, self.form.length
        shape = {"text": (length + 1,), "questions": (2, length)}.get(texts.kind, (length,))
        return Facts(
            texts.name,
            texts.origin,
            texts.where,
            shape,
            "int32",
            texts.classes,
            (*texts.notes, *self.cut.notes),
            texts.kind,
            texts.class_names,
            self.cut.vocabulary,
            self.cut.padding,
        )

    def targets(self, part: Part) -> Targets:
        targets: Targets = np.array(self._mapped(_targets(part)))
        return targets

    def blocks(self, part: Part) -> Iterator[Inputs]:
        rows = self._mapped(_inputs(part))
        at_once = max(1, _BLOCK_BYTES // max(1, rows[:1].nbytes))
        for first in range(0, len(rows), at_once):
            yield np.asarray(rows[first : first + at_once])

    def parts(self) -> tuple[Part, ...]:
        parts: list[Part] = ["train", "test", "validation"]
        return tuple(part for part in parts if part in self.cut.rows)

    def side(self, part: Part) -> Iterator[bytes]:
        if self.texts.kind != "questions":
            return
        try:
            with (self.folder / _side(part)).open("rb") as file:
                while piece := file.read(_BLOCK_BYTES):
                    yield piece
        except OSError as error:
            raise _damaged(self.folder) from error

    def _mapped(self, name: str) -> NDArray[Any]:
        try:
            array: NDArray[Any] = np.load(self.folder / name, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            raise _damaged(self.folder) from error
        return array


def encoded(
    source: TextSource,
    form: Form,
    cache: Path,
    say: Callable[[str], None],
    environ: Mapping[str, str] | None = None,
) -> Encoded:
    """The rows of a set of texts in the form that a workload wants, cut into tokens unless the cache has them.

    `text` is packed: inputs int32 [rows, length + 1], targets [rows, 1] count the tokens to be predicted. `labelled
    text`: inputs int32 [rows, length], targets [rows] of classes. `questions`: inputs int32 [rows, 2, length] of
    token numbers and segments, targets [rows, 3] and a side file, see `Targets`. Takes some 80 MB of memory whatever
    the size of the text, and where a vocabulary is learnt the words of what it is learnt from. `say` is told once
    before the work. `environ` says where published vocabularies lie; None: this process's own.

    Raises EscalaError DATA-* where texts, labels or a vocabulary are wrong or the files change meanwhile, CFG-RANGE
    where the form fits neither, ENV-DISK where the cache cannot be written.
    """
    # Brings the package `tokenizers` with it, which a set of images does not need.
    from escala.data import tokens

    facts = source.facts()
    _check(form)
    digest = source.digest()
    found = tokens.published(form, os.environ if environ is None else environ)
    identity = found.identity if found else tokens.learnt_identity(form)
    place = cache / _entry_name("text", facts.name, [digest, asdict(replace(form, folder="")), identity])

    def make(folder: Path) -> Manifest:
        say(f"cutting {facts.name} into tokens, once, into {cache}")
        words = tokens.read_published(found) if found else _learnt(source, facts, form, cache, digest, say)
        manifest = _write(folder, source, facts, form, words)
        _require_same(source, facts, digest)
        return manifest

    kept(place, make, say)
    try:
        cut = msgspec.json.decode((place / _CUT).read_bytes(), type=Cut)
    except (OSError, msgspec.MsgspecError) as error:
        raise _damaged(place) from error
    return Encoded(facts, form, place, cut)


def _learnt(
    source: TextSource, facts: TextFacts, form: Form, cache: Path, digest: str, say: Callable[[str], None]
) -> Vocabulary:
    """The vocabulary learnt from the training part; workloads with rows of other lengths have it, too."""
    from escala.data import tokens

    def make(folder: Path) -> Manifest:
        data = tokens.learn(form, _training_texts(source)).encode()
        (folder / _TOKENIZER).write_bytes(data)
        _require_same(source, facts, digest)
        return write_manifest(folder, digest, {_TOKENIZER: _check_of(data)})

    place = cache / _entry_name("tokenizers", facts.name, [digest, tokens.learnt_identity(form)])
    kept(place, make, say)
    try:
        told = (place / _TOKENIZER).read_text(encoding="utf-8")
    except OSError as error:
        raise _damaged(place) from error
    return tokens.read_learnt(form, told, facts.name)


def _require_same(source: TextSource, facts: TextFacts, digest: str) -> None:
    """Ask again for the content: an entry would otherwise keep other texts under the name of these."""
    if source.digest() != digest:
        raise EscalaError(
            "DATA-CHANGED",
            facts.where,
            f"the files of {facts.name} changed while they were read",
            next_step="give the same command again once nothing writes there",
        )


def _training_texts(source: TextSource) -> Iterator[str]:
    context = ""
    for document in source.documents("train"):
        if isinstance(document, Question):
            yield document.question
            if document.context != context:
                yield (context := document.context)
        else:
            yield document.text if isinstance(document, Labelled) else document


def _write(folder: Path, source: TextSource, facts: TextFacts, form: Form, words: Vocabulary) -> Manifest:
    """Write the arrays of all parts."""
    from escala.data.cut import Tally

    files, tallies = dict[str, FileCheck](), dict[str, Tally]()
    tokens = 0
    for part in source.parts():
        tally = tallies[part] = Tally()
        where = f"{facts.where}, {part}"
        files |= _write_part(folder, part, _rows(source, facts, form, words, tally, part), tally)
        if not tally.rows:
            raise EscalaError(
                "DATA-EMPTY",
                where,
                f"holds too little text for one row: {tally.documents:,} documents, {tally.bytes:,} bytes",
                next_step="name data with more text",
            )
        tokens += tally.rows * (form.length + (facts.kind == "text"))
    cut = Cut(
        words.size,
        sum(tally.padding for tally in tallies.values()) / tokens,
        {part: tally.rows for part, tally in tallies.items()},
        (words.told, *_notes(tallies, "questions" if facts.kind == "questions" else "texts")),
    )
    data = msgspec.json.encode(cut)
    (folder / _CUT).write_bytes(data)
    files[_CUT] = _check_of(data)
    return write_manifest(folder, _entry_digest(files), files)


def _rows(
    source: TextSource, facts: TextFacts, form: Form, words: Vocabulary, tally: Tally, part: Part
) -> Iterator[Rows]:
    from escala.data import cut

    documents = source.documents(part)
    if facts.kind == "questions":
        return cut.question_rows(documents, words, form.length, tally, part)
    if facts.kind == "labelled text":
        where = f"{facts.where}, {part}"
        return cut.labelled_rows(documents, words, form.length, tally, facts.classes, where)
    return cut.text_rows(documents, words, form.length, tally)


def _write_part(folder: Path, part: Part, blocks: Iterator[Rows], tally: Tally) -> dict[str, FileCheck]:
    """Write rows as they come, and then, when their number is known, as arrays."""
    targets, shape = list[Targets](), tuple[int, ...]()
    seen, size = hashlib.sha256(), 0
    with ExitStack() as stack:
        rows = stack.enter_context(tempfile.TemporaryFile(dir=folder.parent))
        side = stack.enter_context((folder / _side(part)).open("wb"))
        for block in blocks:
            rows.write(block.inputs.tobytes())
            targets.append(block.targets)
            shape = block.inputs.shape[1:]
            size += side.write(block.side)
            seen.update(block.side)
        tally.rows = sum(map(len, targets))
        if not tally.rows:
            return {}
        wanted = np.concatenate(targets)
        inputs = ArrayFile(folder / _inputs(part), (tally.rows, *shape), "<i4")
        stack.callback(inputs.close)
        classes = ArrayFile(folder / _targets(part), wanted.shape, "<i8")
        stack.callback(classes.close)
        classes.append(wanted)
        rows.seek(0)
        while piece := rows.read(_BLOCK_BYTES):
            inputs.append(np.frombuffer(piece, "<i4"))
    checks = {_inputs(part): inputs.check(), _targets(part): classes.check()}
    if size:
        return checks | {_side(part): FileCheck(size, seen.hexdigest())}
    (folder / _side(part)).unlink()
    return checks


def _notes(tallies: Mapping[str, Tally], what: str) -> Iterator[str]:
    for part, tally in tallies.items():
        yield f"{part}: {tally.documents:,} documents, {tally.lines:,} lines, {tally.bytes:,} bytes of UTF-8"
        if tally.cut:
            yield f"{part}: {tally.cut:,} of {tally.rows:,} {what} are too long for their row and lose their end"
        if tally.outside:
            yield f"{part}: {tally.outside:,} of {tally.rows:,} questions have their answer outside the row"


def _check(form: Form) -> None:
    shortest = _SHORTEST[form.kind]
    if form.length < shortest:
        raise EscalaError(
            "CFG-RANGE",
            "workload.options.length",
            f"{form.length} tokens make no row",
            expected=f"at least {shortest}",
            next_step="raise it",
        )


def _entry_name(what: str, name: str, key: list[Any]) -> str:
    told = re.sub(r"[^A-Za-z0-9-]+", "_", name)[:40]
    digest = hashlib.sha256(json.dumps([_LAYOUT, *key]).encode()).hexdigest()
    return f"{what}-{told}-{digest[:20]}"


def _entry_digest(files: Mapping[str, FileCheck]) -> str:
    told = json.dumps(sorted((name, check.sha256) for name, check in files.items()))
    return hashlib.sha256(told.encode()).hexdigest()


def _check_of(data: bytes) -> FileCheck:
    return FileCheck(len(data), hashlib.sha256(data).hexdigest())


def _inputs(part: Part) -> str:
    return f"{part}-inputs.npy"


def _targets(part: Part) -> str:
    return f"{part}-targets.npy"


def _side(part: Part) -> str:
    return f"{part}-side"


def _damaged(folder: Path) -> EscalaError:
    return EscalaError(
        "DATA-CACHE",
        str(folder),
        "texts cut into tokens are missing or damaged",
        next_step="give the same command again: they are then made anew",
    )
