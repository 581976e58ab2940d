"""Opening what a person named, with every refusal of the system put into words."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

from escala.terms.errors import EscalaError

SYSTEM_FOLDER = Path("/usr/share/datasets")
"""Where Debian's packages put data sets, a folder each."""

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


class Place(NamedTuple):
    """Where a named set was found. `told` is how records call it: they travel, and whose folders lie where is
    nobody's business."""

    path: Path
    told: str
    notes: tuple[str, ...]


def places(name: str, environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The files or folders in which a named set is looked for, in order."""
    own = _own_folder(environ)
    return (*((own / name, own) if own else ()), SYSTEM_FOLDER / name)


def first_place(name: str, environ: Mapping[str, str], holds: Callable[[Path], bool]) -> Place | None:
    """The first of `places` that is there and `holds` the set; None where none does.

    Raises EscalaError DATA-PATH where `$ESCALA_DATA` is no readable folder: who sets it means it.
    """
    own = _own_folder(environ)
    if own is not None:
        files_in(own)
    for path in places(name, environ):
        if not is_missing(path) and holds(path):
            notes = (f"$ESCALA_DATA itself holds the files, so they are taken for {name}",) if path == own else ()
            told = str("$ESCALA_DATA" / path.relative_to(own)) if own and path.is_relative_to(own) else str(path)
            return Place(path, told, notes)
    return None


def _own_folder(environ: Mapping[str, str]) -> Path | None:
    value = environ.get("ESCALA_DATA", "")
    return named_path(value) if value else None


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
