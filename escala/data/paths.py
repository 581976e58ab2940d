"""Opening what a person named, with every refusal of the system put into words."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from escala.terms.errors import EscalaError

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFREG: "a file",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def named_path(text: str) -> Path:
    """The absolute path that a person wrote, with `~` filled in."""
    return Path(os.path.expanduser(text)).absolute()


def open_file(path: Path) -> BinaryIO:
    """An ordinary file, open for reading bytes. Raises EscalaError DATA-PATH for anything else."""
    # Asked first, because to open a pipe would wait for a writer for ever.
    _require(path, stat.S_IFREG)
    try:
        return path.open("rb")
    except OSError as error:
        raise path_error(path, _words(error)) from error


def files_in(folder: Path) -> set[str]:
    """The names in a folder. Raises EscalaError DATA-PATH where it is missing, no folder or not readable."""
    _require(folder, stat.S_IFDIR)
    try:
        return set(os.listdir(folder))
    except OSError as error:
        raise path_error(folder, _words(error)) from error


def is_missing(path: Path) -> bool:
    """Whether nothing at all stands at `path`. Raises EscalaError DATA-PATH where that cannot be found out."""
    try:
        os.stat(path)
    except FileNotFoundError:
        # A link that leads nowhere is there, and a mistake.
        return not os.path.lexists(path)
    except (OSError, ValueError) as error:
        raise path_error(path, _words(error)) from error
    return False


def path_error(path: Path | str, what: str, *, expected: str = "", next_step: str = "") -> EscalaError:
    """DATA-PATH for one path."""
    return EscalaError("DATA-PATH", str(path), what, expected=expected, next_step=next_step)


def _require(path: Path, kind: int) -> None:
    try:
        found = stat.S_IFMT(os.stat(path).st_mode)
    except (OSError, ValueError) as error:
        raise path_error(path, _words(error)) from error
    if found != kind:
        raise path_error(path, f"is {_KINDS.get(found, 'of another kind')}", expected=f"expected {_KINDS[kind]}")


def _words(error: OSError | ValueError) -> str:
    """The system's reason; a path with a zero byte in it never gets as far as the system."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return str(error)
