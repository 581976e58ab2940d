"""Unpacking a tar (packed by gzip or not), a zip or a single gzip file that may come from anywhere.

Every member is looked at before the first byte is written; one that is not a plain file or folder inside the target
has the whole archive refused. What an archive says of owners, rights and times is not taken over. The kind is decided
by the content; only a single gzip file that is called a tar has to be one.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from escala.data.paths import is_missing, open_file, path_error
from escala.store.files import disk_errors
from escala.terms.errors import EscalaError

_PIECE = 256 * 1024
_GZIP = b"\x1f\x8b"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_TAR_NAMES = (".tar", ".tar.gz", ".tgz")
_LONG_NOTES = (
    tarfile.XHDTYPE,
    tarfile.XGLTYPE,
    tarfile.SOLARIS_XHDTYPE,
    tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)
_LONGEST_NOTE = 2**20
_LONGEST_LIST = 2**26
"""Bytes of a tar's note about a member, and of a zip's list of members; both are read into memory whole."""


@dataclass(frozen=True)
class Limits:
    """What an archive may unpack to: so many members, so many bytes, and so many times its own size.

    The ratio counts only beyond `small` bytes. A text packs to a quarter or a fifth, an image hardly at all; zeros
    pack by gzip to a thousandth.
    """

    members: int = 500_000
    bytes: int = 64 * 2**30
    ratio: int = 200
    small: int = 2**20


LIMITS = Limits()


@dataclass(frozen=True)
class _Member:
    """A file (with its promised `size` in bytes) or a folder. `odd`: what it is instead of either."""

    name: str
    folder: bool
    size: int
    odd: str
    open: Callable[[], IO[bytes] | None]


def unpack(archive: Path, target: Path, limits: Limits = LIMITS) -> None:
    """Unpack all of `archive` into the new folder `target`, or nothing.

    Raises EscalaError SEC-ARCHIVE for a member that is no plain file or folder inside the target, and for an archive
    beyond the limits; DATA-ARCHIVE where it is damaged or of another kind, DATA-PATH where it cannot be opened or
    something lies at `target` already, ENV-DISK.
    """
    if not is_missing(target):
        raise path_error(target, "is there already", next_step="remove it first, or choose another place")
    with disk_errors(archive, doing="read"), _members(archive, limits) as members:
        if not sum(1 for _ in _checked(archive, members, limits)):
            raise _damaged(archive, "holds nothing")
    with (
        disk_errors(target),
        tempfile.TemporaryDirectory(prefix=f".{target.name}.unpack-", dir=target.parent) as work,
    ):
        # A folder in the temporary one, since that is closed to everybody else.
        new = Path(work, "new")
        new.mkdir()
        with _members(archive, limits) as members:
            # Checked again: somebody may have replaced the archive meanwhile.
            for member, inside in _checked(archive, members, limits):
                _write(archive, member, new.joinpath(*inside))
        os.rename(new, target)


def _write(archive: Path, member: _Member, path: Path) -> None:
    if member.folder:
        path.mkdir(parents=True, exist_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    source = member.open()
    if source is None:
        raise _damaged(archive, f"member {member.name[:200]!r} has no content")
    with source, path.open("xb") as out:
        while piece := source.read(_PIECE):
            out.write(piece)


def _checked(archive: Path, members: Iterator[_Member], limits: Limits) -> Iterator[tuple[_Member, tuple[str, ...]]]:
    """Each member with the parts of its name. Raises EscalaError SEC-ARCHIVE at the first that is not safe."""
    most, why = _most_bytes(archive, limits)
    files, folders, total = set[tuple[str, ...]](), set[tuple[str, ...]](), 0
    for number, member in enumerate(members, 1):
        if number > limits.members:
            raise _unsafe(archive, f"holds more than {limits.members:,} members")
        total += member.size
        if total > most:
            raise _unsafe(archive, f"would unpack to {total:,} bytes or more", why)
        shown = f"member {number:,}, {member.name[:200]!r},"
        if member.odd:
            raise _unsafe(archive, f"{shown} is {member.odd}", "plain files and folders only")
        inside = _parts_inside(member.name)
        if inside is None or not (inside or member.folder):
            raise _unsafe(archive, f"{shown} leads out of the folder it is unpacked to", "relative names without ..")
        above = {inside[:length] for length in range(len(inside))}
        if inside in files or above & files or (inside in folders and not member.folder):
            raise _unsafe(archive, f"{shown} takes the place of another member")
        folders |= above
        (folders if member.folder else files).add(inside)
        yield member, inside


def _parts_inside(name: str) -> tuple[str, ...] | None:
    """The folders of a member's name and the name itself; None where it leads elsewhere on any system."""
    parts = re.split(r"[/\\]", name)
    drive = re.match("[A-Za-z]:", name)
    if not name or not parts[0] or ".." in parts or drive or "\0" in name:
        return None
    return tuple(part for part in name.split("/") if part not in ("", "."))


def _most_bytes(archive: Path, limits: Limits) -> tuple[int, str]:
    """How many bytes may come out of the archive, and by which rule."""
    with open_file(archive) as file:
        size = os.fstat(file.fileno()).st_size
    by_ratio = max(limits.small, limits.ratio * size)
    if by_ratio < limits.bytes:
        return by_ratio, f"at most {limits.ratio} times its {size:,} bytes"
    return limits.bytes, f"at most {limits.bytes:,}"


@contextmanager
def _members(archive: Path, limits: Limits) -> Iterator[Iterator[_Member]]:
    """The archive's members in order; each is to be opened before the next one is asked for."""
    with _damage(archive), open_file(archive) as file:
        start = file.read(tarfile.BLOCKSIZE)
        file.seek(0)
        if start.startswith(_ZIP):
            with zipfile.ZipFile(_ShortReads(archive, file)) as opened:
                yield (_of_zip(opened, info) for info in opened.infolist())
            return
        most, why = _most_bytes(archive, limits)
        if not start.startswith(_GZIP):
            if not _begins_tar(start):
                raise _damaged(archive, "is neither a tar, a zip nor a gzip file")
            yield _of_tar(_Counted(archive, file, most, why))
            return
        with gzip.GzipFile(fileobj=file) as plain:
            is_tar = _begins_tar(plain.read(tarfile.BLOCKSIZE))
            plain.seek(0)
            content = _Counted(archive, cast(BinaryIO, plain), most, why)
            if is_tar:
                yield _of_tar(content)
            elif archive.name.endswith(_TAR_NAMES):
                raise _damaged(archive, "is gzip data, but no tar is in them")
            else:
                # Read through first, so that its length and checksum are known before anything is written.
                content.drain()
                plain.seek(0)
                name = archive.name.removesuffix(".gz")
                yield iter([_Member(name, False, content.seen, "", lambda: cast(IO[bytes], plain))])


def _of_zip(opened: zipfile.ZipFile, info: zipfile.ZipInfo) -> _Member:
    kind = stat.S_IFMT(info.external_attr >> 16)
    folder = info.is_dir()
    # Written on a system without such kinds, a member has none.
    plain = kind in (0, stat.S_IFDIR if folder else stat.S_IFREG)
    # The name as it stands in the file: zipfile cuts its own at a zero byte.
    return _Member(
        info.orig_filename, folder, info.file_size, "" if plain else "a link or device", lambda: opened.open(info)
    )


def _of_tar(content: _Counted) -> Iterator[_Member]:
    """All members; then the rest is read, too, because gzip compares its checksum at the end."""
    with tarfile.open(fileobj=cast(Any, content), mode="r|", tarinfo=_Header, bufsize=_PIECE) as opened:
        while (info := opened.next()) is not None:
            # Otherwise the tar keeps them all.
            cast(Any, opened).members.clear()
            if info.size < 0:
                raise tarfile.ReadError("a member has a negative size")
            odd = "" if (info.isreg() and not info.issparse()) or info.isdir() else _odd(info)
            size = info.size if info.isreg() else 0
            yield _Member(info.name, info.isdir(), size, odd, lambda info=info: opened.extractfile(info))  # type: ignore[misc]
    content.drain()


def _odd(info: tarfile.TarInfo) -> str:
    if info.issym() or info.islnk():
        return f"a link to {info.linkname[:200]!r}"
    if info.isdev():
        return "a device or pipe"
    return "a file with holes" if info.issparse() else "of an unknown kind"


class _Header(tarfile.TarInfo):
    """A member's header. Refuses what tarfile takes for the archive's end, and notes that would fill the memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        try:
            header = super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if len(buf) == tarfile.BLOCKSIZE and not any(buf):
                raise
            raise tarfile.ReadError(f"a header is damaged or missing: {error}") from error
        if header.size < 0 or (header.type in _LONG_NOTES and header.size > _LONGEST_NOTE):
            raise tarfile.ReadError(f"a header of type {header.type!r} promises {header.size:,} bytes")
        return header


def _begins_tar(start: bytes) -> bool:
    try:
        tarfile.TarInfo.frombuf(start, "utf-8", "surrogateescape")
    except (tarfile.HeaderError, ValueError):
        return False
    return True


class _Counted:
    """A stream that ends with SEC-ARCHIVE once more than `most` bytes came out of it; `why` names the rule."""

    def __init__(self, archive: Path, stream: BinaryIO, most: int, why: str) -> None:
        self._archive, self._stream, self._why = archive, stream, why
        # A tar's own headers and padding are no content.
        self._most = most + most // 2
        self.seen = 0

    def read(self, size: int) -> bytes:
        data = self._stream.read(min(size, _PIECE))
        self.seen += len(data)
        if self.seen > self._most:
            raise _unsafe(self._archive, f"would unpack to {self.seen:,} bytes or more", self._why)
        return data

    def drain(self) -> None:
        """Read what is left."""
        while self.read(_PIECE):
            pass


class _ShortReads(io.RawIOBase):
    """A zip's bytes. Its list of members is asked for in one piece, so a long one is refused here."""

    def __init__(self, archive: Path, file: BinaryIO) -> None:
        self._archive, self._file = archive, file

    def read(self, size: int = -1, /) -> bytes:
        if size > _LONGEST_LIST:
            raise _unsafe(self._archive, f"its list of members takes {size:,} bytes", f"at most {_LONGEST_LIST:,}")
        return self._file.read(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


@contextmanager
def _damage(archive: Path) -> Iterator[None]:
    """Turn what the readers of archives raise for damaged bytes into DATA-ARCHIVE."""
    try:
        yield
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        gzip.BadGzipFile,
        zlib.error,
        EOFError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        OverflowError,
        MemoryError,
    ) as error:
        raise _damaged(archive, f"cannot be unpacked: {error or type(error).__name__}") from error


def _unsafe(archive: Path, what: str, expected: str = "") -> EscalaError:
    next_step = "nothing was unpacked; do not use this archive, fetch the set from its publisher"
    return EscalaError("SEC-ARCHIVE", str(archive), what, expected=expected, next_step=next_step)


def _damaged(archive: Path, what: str) -> EscalaError:
    next_step = "nothing was unpacked; fetch it again from its publisher"
    return EscalaError("DATA-ARCHIVE", str(archive), what, next_step=next_step)
