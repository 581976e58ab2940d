"""One IDX file, as MNIST and its kin are published: a header, then unsigned bytes; packed by gzip or not.

Whether it is packed is decided by its first bytes, never by its name. Nothing is believed: the header's
numbers are checked before any memory is taken for them, the body must be exactly as long as they say, and
gzip's own checksum is read to the end. Every fault is EscalaError DATA-IDX with the byte at which it shows.
"""

from __future__ import annotations

import gzip
import math
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from escala.data.paths import open_file
from escala.terms.errors import EscalaError

LARGEST_BODY = 8 * 2**30
"""Bytes; a header that promises more is refused."""

UNSIGNED_BYTE = 0x08
_GZIP = b"\x1f\x8b"
_READ_AT_ONCE = 64 * 1024
_BLOCK = 1024 * 1024


@dataclass(frozen=True)
class Idx:
    """What the header of the file at `path` says: `shape`, rows first. `packed`: the file is gzip data."""

    path: Path
    packed: bool
    shape: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        """Bytes of one row."""
        return math.prod(self.shape[1:])

    @property
    def header_bytes(self) -> int:
        """Bytes before the first row."""
        return 4 + 4 * len(self.shape)

    @property
    def body_bytes(self) -> int:
        """Bytes of all rows together."""
        return math.prod(self.shape)


def read_header(path: Path, dimensions: int) -> Idx:
    """The checked header of an IDX file of unsigned bytes with so many dimensions.

    Raises EscalaError DATA-PATH where the file cannot be opened, DATA-IDX where the header is wrong or an
    unpacked file is longer or shorter than it promises.
    """
    with _unpacked(path) as (stream, packed):
        fault = _Fault(path, packed)
        magic = _read(stream, 4, fault, at=0)
        wanted = bytes([0, 0, UNSIGNED_BYTE, dimensions])
        if magic != wanted:
            raise fault(0, f"the file begins with {magic.hex(' ') or 'nothing'}", f"expected {wanted.hex(' ')}")
        sizes = _read(stream, 4 * dimensions, fault, at=4)
        if len(sizes) < 4 * dimensions:
            raise fault(4 + len(sizes), "the header ends", f"expected {4 * dimensions} bytes of sizes from byte 4 on")
        file_bytes = os.fstat(stream.fileno()).st_size
    idx = Idx(path, packed, struct.unpack(f">{dimensions}I", sizes))
    _check_sizes(idx, fault)
    if not packed:
        _check_body(idx, file_bytes - idx.header_bytes, fault)
    return idx


def read_blocks(idx: Idx) -> Iterator[NDArray[np.uint8]]:
    """All rows in order, about 1 MiB at a time, each block [rows, ...]. Raises EscalaError DATA-IDX."""
    rows_at_once = max(1, _BLOCK // idx.row_bytes)
    with _unpacked(idx.path) as (stream, packed):
        fault = _Fault(idx.path, packed)
        at = len(_read(stream, idx.header_bytes, fault, at=0))
        for first in range(0, idx.shape[0], rows_at_once):
            wanted = min(rows_at_once, idx.shape[0] - first) * idx.row_bytes
            body = _read(stream, wanted, fault, at=at)
            at += len(body)
            if len(body) < wanted:
                raise _short(idx, at - idx.header_bytes, fault)
            yield np.frombuffer(body, np.uint8).reshape(-1, *idx.shape[1:])
        # Asking for one byte more also makes gzip compare its checksum.
        if _read(stream, 1, fault, at=at):
            raise fault(at, "more bytes follow the last row", _promise(idx))


@dataclass(frozen=True)
class _Fault:
    """Makes the errors of one file; in a packed one, bytes are counted as if it were not."""

    path: Path
    packed: bool

    def __call__(self, at: int, what: str, expected: str = "") -> EscalaError:
        where = f"{self.path}{', unpacked' if self.packed else ''}, byte {at:,}"
        next_step = "fetch the file again from its publisher"
        return EscalaError("DATA-IDX", where, what, expected=expected, next_step=next_step)


def _check_sizes(idx: Idx, fault: _Fault) -> None:
    for dimension, size in enumerate(idx.shape):
        if size == 0:
            raise fault(4 + 4 * dimension, f"size {dimension + 1} of {len(idx.shape)} is 0", "expected 1 or more")
    if idx.body_bytes > LARGEST_BODY:
        raise fault(4, _promise(idx), f"at most {LARGEST_BODY:,} are read")


def _check_body(idx: Idx, found: int, fault: _Fault) -> None:
    """Compare the bytes found after the header with the promised ones."""
    if found < idx.body_bytes:
        raise _short(idx, found, fault)
    if found > idx.body_bytes:
        end = idx.header_bytes + idx.body_bytes
        raise fault(end, f"{found - idx.body_bytes:,} more bytes follow the last row", _promise(idx))


def _short(idx: Idx, found: int, fault: _Fault) -> EscalaError:
    return fault(idx.header_bytes + found, f"the file ends, {found:,} bytes after its header", _promise(idx))


def _promise(idx: Idx) -> str:
    sizes = " x ".join(map(str, idx.shape))
    return f"the header promises {sizes} = {idx.body_bytes:,} bytes"


@contextmanager
def _unpacked(path: Path) -> Iterator[tuple[BinaryIO, bool]]:
    """The file's content, unpacked if it is gzip data, and whether it was."""
    with ExitStack() as stack:
        stream = stack.enter_context(open_file(path))
        packed = _read(stream, len(_GZIP), _Fault(path, False), at=0) == _GZIP
        stream.seek(0)
        if packed:
            stream = cast(BinaryIO, stack.enter_context(gzip.GzipFile(fileobj=stream)))
        yield stream, packed


def _read(stream: BinaryIO, size: int, fault: _Fault, *, at: int) -> bytes:
    """The next `size` bytes, fewer at the end of the file; `at` counts the bytes before them."""
    parts: list[bytes] = []
    got = 0
    try:
        # Small reads: one that comes upon a fault loses what it had, and with it the place of the fault.
        while got < size and (part := stream.read1(min(size - got, _READ_AT_ONCE))):  # type: ignore[attr-defined]
            parts.append(part)
            got += len(part)
    except EOFError as error:
        raise fault(at + got, "the gzip data end too early: the file was cut") from error
    except (zlib.error, gzip.BadGzipFile) as error:
        raise fault(at + got, f"the gzip data are damaged: {error}") from error
    except OSError as error:
        raise fault(at + got, f"cannot be read: {error.strerror}") from error
    return b"".join(parts)
