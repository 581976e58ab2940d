"""Data made ready once for a whole machine: plain arrays in a cache that every process maps into its memory.

An entry is a folder named by what is in it: the content's digest (of a generated set, its settings) and the
split. How it comes to be whole or absent stands in `escala.data.entry`.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from escala.data import open_source
from escala.data.arrays import ArrayFile, array_bytes
from escala.data.base import Description, Inputs, Part, Request, Source, Split
from escala.data.entry import kept
from escala.data.manifest import FileCheck, Manifest, read_manifest, write_manifest
from escala.data.split import Rows
from escala.data.survey import Survey, changed, read_through, survey
from escala.terms.errors import EscalaError

SPLITS = ("train", "validation", "test")

_LAYOUT = 2
"""Raised when the files of an entry change, so that older entries are left alone."""
_MANIFEST_BYTES = 4096


@dataclass(frozen=True)
class Prepared:
    """A folder that `load` opens, and what is in it."""

    folder: Path
    description: Description


def cache_folder(environ: Mapping[str, str]) -> Path:
    """Where prepared data are kept: $ESCALA_CACHE, else escala in $XDG_CACHE_HOME, else ~/.cache/escala."""
    if own := environ.get("ESCALA_CACHE"):
        return Path(os.path.expanduser(own)).absolute()
    # The standard has relative paths in this variable ignored.
    if os.path.isabs(xdg := environ.get("XDG_CACHE_HOME", "")):
        return Path(xdg, "escala")
    return Path(environ.get("HOME") or os.path.expanduser("~"), ".cache", "escala").absolute()


def prepare(request: Request, cache: Path, environ: Mapping[str, str], say: Callable[[str], None]) -> Prepared:
    """Check the data, and write their splits as plain arrays unless the cache has them already.

    Meant to be called by one process of a machine before the others `load`; several at once do each other no
    harm. Needs a few MB of memory whatever the size of the set. `say` is told of waits and of longer work.
    Raises EscalaError DATA-* where the data are wrong, CFG-RANGE where the request does not fit them, ENV-DISK
    where the cache cannot be written.
    """
    source = open_source(request.name, environ, request.form, cache, say)
    found = survey(source, request)
    place = cache / _entry_name(found.description, request)
    manifest = kept(place, lambda folder: _make(folder, cache, source, found, say), say, _bytes_needed(found))
    return Prepared(place, replace(found.description, digest=manifest.digest))


def load(folder: Path) -> dict[str, Split]:
    """The splits `train`, `validation` and `test` of a prepared folder, mapped from their files, not read.

    Raises EscalaError DATA-CACHE where the folder is no longer whole.
    """
    if (manifest := read_manifest(folder)) is not None:
        try:
            return {
                split: Split(
                    _mapped(folder, _inputs(split)),
                    _mapped(folder, _targets(split)),
                    folder / _side(split) if _side(split) in manifest.files else None,
                )
                for split in SPLITS
            }
        except (OSError, ValueError):
            pass
    raise EscalaError(
        "DATA-CACHE",
        str(folder),
        "prepared data are missing or damaged",
        next_step="give the same command again: they are then made anew",
    )


def _mapped(folder: Path, name: str) -> Inputs:
    # As a plain array: slices of numpy's own mapped type cost several times as much. Private, not read-only: PyTorch
    # takes no array that may not be written to.
    return np.asarray(np.load(folder / name, mmap_mode="c", allow_pickle=False))


def _inputs(split: str) -> str:
    return f"{split}-inputs.npy"


def _targets(split: str) -> str:
    return f"{split}-targets.npy"


def _side(split: str) -> str:
    return f"{split}-side"


def _entry_name(description: Description, request: Request) -> str:
    content = description.digest or description.where
    key = json.dumps([_LAYOUT, content, request.validation, request.limit, asdict(request.form)])
    name = re.sub(r"[^A-Za-z0-9-]+", "_", description.name)[:40]
    return f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:20]}"


def _make(folder: Path, cache: Path, source: Source, found: Survey, say: Callable[[str], None]) -> Manifest:
    """Write an entry of the cache into `folder`."""
    described = found.description
    verb = "drawing" if described.origin == "generated" else "unpacking"
    say(f"{verb} {described.name}: {sum(map(len, found.targets.values())):,} rows, once, into {cache}")
    digest, files = _write(folder, source, found)
    if described.digest not in ("", digest):
        raise changed(found.facts)
    return write_manifest(folder, digest, files)


def _write(folder: Path, source: Source, found: Survey) -> tuple[str, dict[str, FileCheck]]:
    """Write the arrays of all splits in one reading of the source. Returns its digest and the files' checks."""
    described, kept = found.description, found.kept
    chosen = {
        "train": found.targets["train"][kept.train],
        "validation": found.targets["validation" if kept.published else "train"][_validation_rows(found)],
        "test": found.targets["test"],
    }
    files: dict[str, ArrayFile] = {}
    with ExitStack() as stack:
        for split in SPLITS:
            shape = (described.rows[split], *described.shape)
            wanted = (shape[0], *chosen[split].shape[1:])
            for name, form, dtype in ((_inputs(split), shape, described.dtype), (_targets(split), wanted, "<i8")):
                files[name] = ArrayFile(folder / name, form, dtype)
                stack.callback(files[name].close)
            files[_targets(split)].append(chosen[split])

        def keep(part: Part, first: int, block: Inputs) -> None:
            if part == "test" or (part == "validation" and kept.published):
                files[_inputs(part)].append(block)
            if part != "train":
                return
            for split, rows in (("train", kept.train), ("validation", kept.validation)):
                begin, end = np.searchsorted(rows, (first, first + len(block)))
                files[_inputs(split)].append(block[rows[begin:end] - first])

        digest = read_through(source, found.facts, found.targets, keep)
    checks = {name: file.check() for name, file in files.items()}
    for part in source.parts():
        # What is held out of the training rows is judged with what is known beside these.
        split = "test" if part == "test" else "validation"
        if part == "test" or (part == "validation") is kept.published:
            checks |= _write_side(folder / _side(split), source.side(part))
    return digest, checks


def _write_side(path: Path, pieces: Iterator[bytes]) -> dict[str, FileCheck]:
    first = next(pieces, None)
    if first is None:
        return {}
    seen, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        for piece in itertools.chain((first,), pieces):
            seen.update(piece)
            size += file.write(piece)
    return {path.name: FileCheck(size, seen.hexdigest())}


def _validation_rows(found: Survey) -> Rows | slice:
    return slice(None) if found.kept.published else found.kept.validation


def _bytes_needed(found: Survey) -> int:
    described = found.description
    arrays = sum(
        array_bytes((rows, *described.shape), described.dtype)
        + array_bytes((rows, *found.targets["train"].shape[1:]), "<i8")
        for rows in described.rows.values()
    )
    return arrays + _MANIFEST_BYTES
