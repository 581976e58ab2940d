"""One campaign, one escala: a lock file that also says who holds it."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
import psutil

from escala.store.files import disk_errors, names_in, write_all
from escala.terms.errors import EscalaError

LOCK_NAME = "lock"
_LONGEST = 4096
# The start time of a process is told in clock time, which is set right now and then.
_SAME_START_S = 2.0


class Owner(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Who holds a lock. `started` is when the process began, seconds since 1970."""

    pid: int
    host: str
    started: float


@contextmanager
def hold(folder: Path) -> Iterator[str | None]:
    """Hold the campaign's lock; the folder is made if need be. Yields a note if a dead process's lock was taken over.

    Raises ENV-LOCK naming the process and host that hold it, ENV-DISK where the lock cannot be written.
    """
    path = folder / LOCK_NAME
    with disk_errors(path):
        names_in(folder)
        descriptor, locked = _open_locked(path)
    try:
        note = _take_over(path, descriptor, locked)
        try:
            _sign(path, descriptor)
            yield note
        finally:
            # Removed before it is let go: nobody can be holding this file by then.
            with suppress(OSError):
                if _is_at(path, descriptor):
                    path.unlink()
    finally:
        os.close(descriptor)


def _open_locked(path: Path) -> tuple[int, bool]:
    """A descriptor of the file that stands at `path`, and whether its advisory lock was granted."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            locked = _try_lock(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        # The holder may have removed the file between our opening it and our locking it.
        if not locked or _is_at(path, descriptor):
            return descriptor, locked
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        # Some cluster file systems are mounted without such locks: what the file says must do then.
        if error.errno not in (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK):
            raise
    return True


def _take_over(path: Path, descriptor: int, locked: bool) -> str | None:
    """What to tell about the lock's last holder, if it left without a word. Raises ENV-LOCK if it is there."""
    with disk_errors(path, doing="read"):
        content = os.pread(descriptor, _LONGEST, 0)
    owner = _owner(content)
    if not locked:
        raise _held(path, owner)
    if owner is None:
        if content.strip():
            raise EscalaError(
                "ENV-LOCK",
                str(path),
                "this file is no lock of escala",
                next_step="use another folder, or move the file away",
            )
        return None
    here = socket.gethostname()
    if owner.host != here:
        raise EscalaError(
            "ENV-LOCK",
            str(path),
            f"process {owner.pid} on host {owner.host} holds the campaign, as far as can be told from host {here}",
            next_step=f"if no escala works on it there any more, remove {path}",
        )
    end = _end_of(owner)
    if end is None:
        raise _held(path, owner)
    return f"took over the lock of process {owner.pid}, {end}"


def _held(path: Path, owner: Owner | None) -> EscalaError:
    wait = "wait until it has ended, or use another folder"
    if owner is None:
        return EscalaError("ENV-LOCK", str(path), "a process that is just starting holds it", next_step=wait)
    who = f"process {owner.pid} on host {owner.host}"
    if owner.host == socket.gethostname() and _end_of(owner):
        return EscalaError("ENV-LOCK", str(path), f"a child of {who}, itself ended, still holds it", next_step=wait)
    return EscalaError("ENV-LOCK", str(path), f"{who} works on this campaign", next_step=wait)


def _sign(path: Path, descriptor: int) -> None:
    pid = os.getpid()
    data = msgspec.json.encode(Owner(pid, socket.gethostname(), psutil.Process(pid).create_time()))
    with disk_errors(path, len(data)):
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        write_all(descriptor, data + b"\n")
        os.fsync(descriptor)


def _owner(content: bytes) -> Owner | None:
    try:
        return msgspec.json.decode(content, type=Owner)
    except msgspec.MsgspecError:
        return None


def _end_of(owner: Owner) -> str | None:
    """That a process of this host has ended, in words; None: it is there."""
    try:
        process = psutil.Process(owner.pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return "which has ended"
        if abs(process.create_time() - owner.started) > _SAME_START_S:
            return "which has ended; another process has its number now"
    except psutil.AccessDenied:
        # Another user's process on a host that hides them: it is there, and no more can be known.
        return None
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        return "which has ended"
    return None


def _is_at(path: Path, descriptor: int) -> bool:
    with suppress(FileNotFoundError):
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    return False
