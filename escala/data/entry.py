"""One entry of the cache: a folder that is whole or absent, made by one process at a time.

An entry is written beside its place and renamed; its manifest holds the size and checksum of each file, so later
damage is seen and the entry made anew.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from escala.data.manifest import Manifest, read_checked
from escala.store.files import disk_errors, names_in
from escala.terms.errors import EscalaError


def kept(
    place: Path, make: Callable[[Path], Manifest], say: Callable[[str], None], needed: int | None = None
) -> Manifest:
    """The manifest of the entry at `place`, which `make` writes into an empty folder where no whole one is there.

    `needed`: bytes that it is known to take; `say` is told of a wait. Raises EscalaError ENV-DISK where the cache
    cannot be written, and what `make` raises.
    """
    # Asked before anything is opened for writing: a finished cache may well be read-only.
    manifest = read_checked(place)
    if manifest is None:
        with _cache_errors(place.parent):
            names_in(place.parent)
        with _alone(place, say):
            manifest = read_checked(place) or _put(place, make, needed)
    return manifest


def _put(place: Path, make: Callable[[Path], Manifest], needed: int | None) -> Manifest:
    """Write the entry beside its place, then put it there."""
    with _cache_errors(place, needed):
        if needed is not None:
            disk = os.statvfs(place.parent)
            if disk.f_bavail * disk.f_frsize < needed:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with tempfile.TemporaryDirectory(prefix=_unfinished(place), dir=place.parent) as work:
            new = Path(work, "new")
            new.mkdir()
            manifest = make(new)
            # Where locks do not work another process may have been first: its entry is as good.
            if read_checked(place) is None:
                if os.path.lexists(place):
                    os.rename(place, Path(work, "damaged"))
                os.rename(new, place)
    return manifest


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


def _unfinished(place: Path) -> str:
    """How the names begin of folders in which the entry is being written."""
    return f".{place.name}.new-"


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
