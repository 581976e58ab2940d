"""Files that are whole or not there, and one place that puts a disk's refusal into words."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from escala.terms.errors import EscalaError

TEMPORARY = ".escala-tmp-"
"""How the names of files begin that a kill in the middle of `write_atomic` can leave behind."""

_MAKE_ROOM = "make room, then give the same command again"
_OTHER_PLACE = "make the place writable or use another one"
_CHECK_DEVICE = "check the disk or the network drive, then give the same command again"
_NEXT_STEP = {
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EFBIG: "raise the limit on file sizes (`ulimit -f`), then give the same command again",
    errno.EIO: _CHECK_DEVICE,
    errno.ESTALE: _CHECK_DEVICE,
    errno.EMFILE: "raise the limit on open files (`ulimit -n`), then give the same command again",
}


def write_atomic(path: Path, data: bytes) -> None:
    """Put `data` under `path`: the old content or the new one is there at every moment, never a part.

    Returns when both the content and the name are on the disk. Raises ENV-DISK; the old content then stays
    and nothing else is left behind.
    """
    # In the same folder, because a rename is atomic within one file system only. The name does not grow with
    # the final one, which may already be as long as the file system allows.
    temporary = path.parent / f"{TEMPORARY}{secrets.token_hex(8)}"
    with disk_errors(path, len(data)):
        try:
            write_new(temporary, data)
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise
        sync_folder(path.parent)


def write_new(path: Path, data: bytes) -> None:
    """A file that was not there, its content on the disk when this returns. Raises OSError, and may leave a part."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte of `data`: a nearly full disk takes the first part and refuses the rest. Raises OSError."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: Path) -> None:
    """Bring a folder's names to the disk, so that a new or renamed file survives a power cut. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems have no such call for folders; they keep names safe by themselves.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


def names_in(folder: Path) -> set[str]:
    """The names in a folder, which is made, with its parents, if it is missing. Raises OSError."""
    # A file or a broken link under that name exists, too; listing it then gives the real reason.
    with suppress(FileExistsError):
        folder.mkdir(parents=True, exist_ok=True)
    return set(os.listdir(folder))


def check_room(path: Path, needed: int) -> None:
    """Refuse to begin what would not end: raises ENV-DISK where fewer than `needed` bytes are free at `path`."""
    free = _free_bytes(path)
    if free is not None and free < needed:
        raise _disk_error(path, needed, "write", OSError(errno.ENOSPC, ""))


@contextmanager
def disk_errors(path: Path, needed: int | None = None, *, doing: str = "write") -> Iterator[None]:
    """Turn any OSError inside into ENV-DISK naming `path`, the reason in words, bytes needed and bytes free."""
    try:
        yield
    except OSError as error:
        raise _disk_error(path, needed, doing, error) from error


def _disk_error(path: Path, needed: int | None, doing: str, error: OSError) -> EscalaError:
    words = os.strerror(error.errno) if error.errno else str(error)
    amounts = ""
    if doing == "write":
        free = _free_bytes(path)
        amounts = f"{'an unknown number of' if free is None else f'{free:,}'} bytes free"
        if needed is not None:
            amounts = f"{needed:,} bytes needed, {amounts}"
    next_step = _NEXT_STEP.get(error.errno or 0, _OTHER_PLACE if doing == "write" else "")
    return EscalaError("ENV-DISK", str(path), f"cannot {doing}: {words}", expected=amounts, next_step=next_step)


def _free_bytes(path: Path) -> int | None:
    """Bytes that an ordinary user may still write where `path` is or would be; None: it can't be found out."""
    for place in (path, *path.absolute().parents):
        with suppress(OSError):
            found = os.statvfs(place)
            return found.f_bavail * found.f_frsize
    return None
