"""Data made ready once for a whole machine: plain arrays in a cache that every process maps into its memory.

An entry is a folder named by what is in it: the content's digest (of a generated set, its settings) and the
split. It is written beside its place and renamed, so it is whole or absent; its manifest holds the size and
checksum of each file, so later damage is seen and the entry made anew.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from escala.data import open_source
from escala.data.arrays import ArrayFile, array_bytes
from escala.data.base import Description, Inputs, Part, Request, Source, Split
from escala.data.manifest import FileCheck, Manifest, read_checked, read_manifest, write_manifest
from escala.data.survey import Survey, changed, read_through, survey
from escala.store.files import disk_errors, names_in
from escala.terms.errors import EscalaError

SPLITS = ("train", "validation", "test")

_LAYOUT = 1
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
    source = open_source(request.name, environ)
    found = survey(source, request)
    place = cache / _entry_name(found.description, request)
    # Asked before anything is opened for writing: a finished cache may well be read-only.
    manifest = read_checked(place)
    if manifest is None:
        with _cache_errors(cache):
            names_in(cache)
        with _alone(place, say):
            manifest = read_checked(place) or _make(place, source, found, say)
    return Prepared(place, replace(found.description, digest=manifest.digest))


def load(folder: Path) -> dict[str, Split]:
    """The splits `train`, `validation` and `test` of a prepared folder, mapped read-only, not read.

    Raises EscalaError DATA-CACHE where the folder is no longer whole.
    """
    if read_manifest(folder) is not None:
        try:
            return {
                split: Split(_mapped(folder, _inputs(split)), _mapped(folder, _targets(split))) for split in SPLITS
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
    # As a plain array: slices of numpy's own mapped type cost several times as much.
    return np.asarray(np.load(folder / name, mmap_mode="r", allow_pickle=False))


def _inputs(split: str) -> str:
    return f"{split}-inputs.npy"


def _targets(split: str) -> str:
    return f"{split}-targets.npy"


def _entry_name(description: Description, request: Request) -> str:
    content = description.digest or description.where
    key = json.dumps([_LAYOUT, content, request.validation, request.limit])
    name = re.sub(r"[^A-Za-z0-9-]+", "_", description.name)[:40]
    return f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:20]}"


def _make(place: Path, source: Source, found: Survey, say: Callable[[str], None]) -> Manifest:
    """Write the entry beside its place, then put it there."""
    described = found.description
    verb = "drawing" if described.origin == "generated" else "unpacking"
    say(f"{verb} {described.name}: {sum(map(len, found.targets.values())):,} rows, once, into {place.parent}")
    needed = _bytes_needed(described)
    with _cache_errors(place, needed):
        disk = os.statvfs(place.parent)
        if disk.f_bavail * disk.f_frsize < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with tempfile.TemporaryDirectory(prefix=_unfinished(place), dir=place.parent) as work:
            new = Path(work, "new")
            new.mkdir()
            digest, files = _write(new, source, found)
            if described.digest not in ("", digest):
                raise changed(found.facts)
            manifest = write_manifest(new, digest, files)
            # Where locks do not work another process may have been first: its entry is as good.
            if read_checked(place) is None:
                if os.path.lexists(place):
                    os.rename(place, Path(work, "damaged"))
                os.rename(new, place)
    return manifest


def _write(folder: Path, source: Source, found: Survey) -> tuple[str, dict[str, FileCheck]]:
    """Write the arrays of all splits in one reading of the source. Returns its digest and the files' checks."""
    described, kept = found.description, found.kept
    chosen = {
        "train": found.targets["train"][kept.train],
        "validation": found.targets["train"][kept.validation],
        "test": found.targets["test"],
    }
    files: dict[str, ArrayFile] = {}
    with ExitStack() as stack:
        for split in SPLITS:
            shape = (described.rows[split], *described.shape)
            for name, form, dtype in ((_inputs(split), shape, described.dtype), (_targets(split), shape[:1], "<i8")):
                files[name] = ArrayFile(folder / name, form, dtype)
                stack.callback(files[name].close)
            files[_targets(split)].append(chosen[split])

        def keep(part: Part, first: int, block: Inputs) -> None:
            if part == "test":
                files[_inputs("test")].append(block)
                return
            for split, rows in (("train", kept.train), ("validation", kept.validation)):
                begin, end = np.searchsorted(rows, (first, first + len(block)))
                files[_inputs(split)].append(block[rows[begin:end] - first])

        digest = read_through(source, found.facts, found.targets, keep)
    return digest, {name: file.check() for name, file in files.items()}


def _bytes_needed(description: Description) -> int:
    arrays = sum(
        array_bytes((rows, *description.shape), description.dtype) + array_bytes((rows,), "<i8")
        for rows in description.rows.values()
    )
    return arrays + _MANIFEST_BYTES


def _unfinished(place: Path) -> str:
    """How the names begin of folders in which the entry is being written."""
    return f".{place.name}.new-"


@contextmanager
def _alone(place: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Let one process at a time look after an entry; what a killed one left unfinished is removed."""
    with _cache_errors(place):
        descriptor = os.open(place.parent / f".{place.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if _locked(descriptor, place, say):
            for left in place.parent.glob(f"{_unfinished(place)}*"):
                shutil.rmtree(left, ignore_errors=True)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int, place: Path, say: Callable[[str], None]) -> bool:
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that prepares {place.name}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError:
        # Some cluster file systems have no locks. The entry is then perhaps written twice, but never wrong.
        return False
    return True


@contextmanager
def _cache_errors(path: Path, needed: int | None = None) -> Iterator[None]:
    """Turn an OSError into ENV-DISK that also says how to choose another place."""
    try:
        with disk_errors(path, needed):
            yield
    except EscalaError as error:
        if error.code != "ENV-DISK":
            raise
        way_out = f"{error.next_step}; ESCALA_CACHE may name another folder"
        raise EscalaError(error.code, error.where, error.what, expected=error.expected, next_step=way_out) from error
