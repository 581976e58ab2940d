"""Fetching a published set: downloaded over https alone, compared with its checksum, unpacked, and put in place.

Everything happens in a folder beside the place; only a set that its own reader accepts is moved there, in one step.
No network is needed where the files were already fetched by other means.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any, Protocol

from escala import __version__
from escala.data import SETS
from escala.data.checked import Progress
from escala.data.paths import is_missing, named_path, open_file, path_error
from escala.data.published import OTHER_WAYS, PUBLISHED, Published, PublishedFile
from escala.store.files import disk_errors, names_in
from escala.terms.errors import EscalaError
from escala.terms.words import did_you_mean, nearest

TIMEOUT_S = 30.0
"""Longest silence of a server."""
LARGEST = 4 * 2**30
"""Bytes; a file of unknown size is not read beyond this."""
_PIECE = 256 * 1024


class Reply(Protocol):
    """What a server sends back."""

    def read(self, size: int, /) -> bytes:
        """The next bytes, fewer at the end. Raises OSError."""

    def close(self) -> None:
        """Let the connection go."""


Opener = Callable[[str], Reply]
"""Takes an https address. Raises OSError."""


@dataclass(frozen=True)
class GotFile:
    """A fetched file: `compared` with the published checksum, or of unknown one."""

    name: str
    size: int
    sha256: str
    compared: bool


@dataclass(frozen=True)
class Got:
    """A set that now lies in `folder`. `licence` is what its publisher says of its use."""

    name: str
    folder: Path
    files: tuple[GotFile, ...]
    licence: str


def open_https(address: str) -> Reply:
    """Ask a server for a file; redirections may lead to https only. Raises OSError."""
    # Put together by hand: urllib's own opener would follow a redirection to plain http, ftp or a local file.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    # Some publishers turn away whoever sends the name of Python's library.
    opener.addheaders = [("User-Agent", f"escala/{__version__}")]
    reply: Reply = opener.open(address, timeout=TIMEOUT_S)
    return reply


def get(
    name: str,
    environ: Mapping[str, str],
    progress: Progress,
    *,
    to: Path | None = None,
    given: Sequence[Path] = (),
    opener: Opener = open_https,
    published: Mapping[str, Published] = PUBLISHED,
) -> Got:
    """Put the published set called `name` into `to`, or else into `$ESCALA_DATA/NAME`.

    `given`: its files, or folders that hold them, already fetched; nothing is then downloaded. Raises EscalaError
    CFG-VALUE for a name or place that cannot be, ENV-NET where a server is not to be reached, DATA-SUM where a file
    is not the published one, SEC-ARCHIVE for an archive that is not safe to unpack, DATA-* where the set cannot be
    read, DATA-PATH where something lies at the place already, ENV-DISK.
    """
    wanted = _published(name, published)
    place = _place(name, environ, to)
    with disk_errors(place.parent):
        names_in(place.parent)
        if not is_missing(place):
            raise path_error(
                place, "is there already", next_step="remove it first, or choose another place with --to"
            )
        with tempfile.TemporaryDirectory(prefix=f".{place.name}.get-", dir=place.parent) as work:
            fetched = Path(work, "fetched")
            fetched.mkdir()
            if given:
                files = tuple(_taken(file, wanted, given, fetched, progress) for file in wanted.files)
            else:
                files = tuple(_downloaded(name, file, fetched, opener, progress) for file in wanted.files)
            new = _unpacked(fetched / wanted.files[0].name, Path(work, "new")) if wanted.archive else fetched
            stage = Path(work, "stage", name)
            stage.parent.mkdir()
            os.rename(new, stage)
            _read_by_its_reader(name, stage.parent)
            os.rename(stage, place)
    return Got(name, place, files, wanted.licence)


def _published(name: str, published: Mapping[str, Published]) -> Published:
    if name in published:
        return published[name]
    way = OTHER_WAYS.get(name, "")
    if not way and name.startswith("synthetic"):
        way = "it is drawn when it is used"
    way = way or did_you_mean(nearest(name, (*published, *OTHER_WAYS)))
    known = f"can be fetched: {', '.join(published)}"
    raise EscalaError("CFG-VALUE", name, "no publisher's address is known for it", expected=known, next_step=way)


def _place(name: str, environ: Mapping[str, str], to: Path | None) -> Path:
    if to is not None:
        return named_path(str(to))
    if own := environ.get("ESCALA_DATA"):
        return named_path(own) / name
    raise EscalaError(
        "CFG-VALUE",
        name,
        "no place to put it is given",
        next_step="set ESCALA_DATA to the folder of your data sets, or give the place with --to DIR",
    )


def _downloaded(name: str, file: PublishedFile, folder: Path, opener: Opener, progress: Progress) -> GotFile:
    if not file.address.startswith("https://"):
        raise EscalaError("SEC-ADDRESS", file.address, "is not an https address")
    with _network_errors(name, file):
        reply = opener(file.address)
    try:
        return _copied(reply, file, folder, progress, lambda: _network_errors(name, file))
    finally:
        reply.close()


def _taken(
    file: PublishedFile, wanted: Published, given: Sequence[Path], folder: Path, progress: Progress
) -> GotFile:
    """Copy one of the set's files from those that a person has fetched."""
    inside = [path / file.name if path.is_dir() else path for path in given]
    # A lone file may have been renamed by whatever fetched it; its checksum tells.
    alone = len(wanted.files) == 1 and len(inside) == 1
    chosen = [path for path in inside if path.name == file.name or alone]
    if not chosen or is_missing(chosen[0]):
        raise path_error(
            ", ".join(map(str, given)),
            f"holds no {file.name}",
            expected=f"expected {', '.join(each.name for each in wanted.files)}",
            next_step=f"fetch it from {file.address}",
        )
    with open_file(chosen[0]) as stream:
        return _copied(stream, file, folder, progress, lambda: disk_errors(chosen[0], doing="read"))


def _copied(
    stream: Reply | IO[bytes],
    file: PublishedFile,
    folder: Path,
    progress: Progress,
    reading: Callable[[], Any],
) -> GotFile:
    """Copy a stream to its file, hashing it, and compare what came. Raises EscalaError DATA-SUM."""
    seen, size = hashlib.sha256(), 0
    most = LARGEST if file.size is None else file.size
    with (folder / file.name).open("xb") as out:
        while True:
            with reading():
                piece = stream.read(_PIECE)
            if not piece:
                break
            size += len(piece)
            if size > most:
                raise _not_it(file, f"is longer than {most:,} bytes", "")
            seen.update(piece)
            out.write(piece)
            progress(file.name, size, file.size)
    if file.size is not None and size != file.size:
        raise _not_it(file, f"ends after {size:,} bytes", f"{file.size:,} are published")
    digest = seen.hexdigest()
    if file.sha256 is not None and digest != file.sha256:
        raise _not_it(file, f"has the sha256 {digest}", f"{file.sha256} is published")
    return GotFile(file.name, size, digest, file.sha256 is not None)


def _not_it(file: PublishedFile, what: str, expected: str) -> EscalaError:
    next_step = "fetch it again; if it stays so, the publisher has changed it: do not use it unseen"
    return EscalaError("DATA-SUM", file.address, what, expected=expected, next_step=next_step)


def _unpacked(archive: Path, target: Path) -> Path:
    """Unpack a checked archive; a lone folder that holds everything is taken for the set itself."""
    from escala.data.archive import unpack

    unpack(archive, target)
    inside = list(target.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else target


def _read_by_its_reader(name: str, folder: Path) -> None:
    """Let the reader of the named set look for it in `folder`, as it will later. Raises EscalaError DATA-*."""
    source = SETS[name](name, {"ESCALA_DATA": str(folder)}) if name in SETS else None
    if source is None or not source.facts().where.startswith("$ESCALA_DATA"):
        raise EscalaError("DATA-PATH", name, "what was fetched is not in the form in which this set is read")


@contextmanager
def _network_errors(name: str, file: PublishedFile) -> Iterator[None]:
    """Turn what a network refuses into ENV-NET with the address, and the way to do without."""
    try:
        yield
    except (OSError, HTTPException, ValueError) as error:
        raise EscalaError(
            "ENV-NET",
            file.address,
            f"cannot be fetched: {_words(error)}",
            next_step=f"fetch it by other means, then: escala data get {name} --from FILE_OR_FOLDER",
        ) from error


def _words(error: Exception) -> str:
    if isinstance(error, urllib.error.HTTPError):
        return f"the server answers {error.code} {error.reason}"
    if isinstance(error, urllib.error.URLError):
        reason = error.reason
        return (reason.strerror or str(reason)) if isinstance(reason, OSError) else str(reason)
    if isinstance(error, TimeoutError):
        return f"no answer within {TIMEOUT_S:.0f} s"
    return str(error) or type(error).__name__
