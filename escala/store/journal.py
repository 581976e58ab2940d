"""The log of results: append-only JSON lines, each with a checksum over the rest of its line.

A line is `{"checksum":"<16 hex>","schema":1,"id":...}`; the sum is blake2b over the bytes that follow its comma.
What is cut, glued or changed is found by it, so a reader either gives back what was written or says where it is
damaged.
"""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from escala.store.files import disk_errors, sync_folder, write_all, write_atomic
from escala.store.plain import not_finite, to_plain
from escala.store.scrub import scrub
from escala.terms.errors import EscalaError
from escala.terms.record import SCHEMA, Record

_START = b'{"checksum":"'
_SUM_END = len(_START) + 16
_REST = _SUM_END + len(b'",')
_SCHEMA_KEY = re.compile(rb'"schema":(\d{1,9}),')
_CURVES = ("losses",)


def _without_curves() -> type[msgspec.Struct]:
    # A decoder skips what its type lacks; building thousands of floats a record to throw them away takes longer.
    same_default: Any = msgspec.field
    fields: list[tuple[str, Any, Any]] = [
        (field.name, field.type, same_default(default=field.default, default_factory=field.default_factory))
        for field in msgspec.structs.fields(Record)
        if field.name not in _CURVES
    ]
    return msgspec.defstruct("RecordWithoutCurves", fields, frozen=True, kw_only=True)


# Lax, because floats that are not finite stand in the file as texts.
_WHOLE = msgspec.json.Decoder(Record, strict=False)
_SLIM = msgspec.json.Decoder(_without_curves(), strict=False)


@dataclass(frozen=True)
class Journal:
    """What a log holds: its `records` in order, and `torn`, the bytes of a last record that was cut."""

    records: tuple[Record, ...] = ()
    torn: bytes = b""


def append(path: Path, record: Record) -> None:
    """Add one record and wait until it is on the disk; a torn tail is set aside first, never glued to.

    Raises ENV-DISK, with the log as it was before, and CFG-RANGE for an option that is NaN or infinite.
    """
    line = _encode(record)
    set_torn_aside(path)
    with disk_errors(path, len(line)):
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        try:
            length = os.fstat(descriptor).st_size
            # A whole last record may lack nothing but its newline.
            glue = b"\n" if length and os.pread(descriptor, 1, length - 1) != b"\n" else b""
            try:
                write_all(descriptor, glue + line)
                os.fsync(descriptor)
            except OSError:
                with suppress(OSError):
                    os.ftruncate(descriptor, length)
                    os.fsync(descriptor)
                raise
        finally:
            os.close(descriptor)
        if not length:
            sync_folder(path.parent)


def read(path: Path, *, curves: bool = True) -> Journal:
    """All records of a log, every checksum verified; a missing log holds none.

    `curves=False` leaves `losses` empty, which takes half the time and little memory.
    Raises RES-CORRUPT for a damaged line, RES-SCHEMA for a record that another version wrote, ENV-DISK where
    reading fails.
    """
    records: list[Record] = []
    for number, offset, line in _lines(path):
        body = line.removesuffix(b"\n")
        if _verifies(body):
            records.append(_decode(body, f"{path} line {number}", curves))
        elif line.endswith(b"\n"):
            what = f"line {number}, which begins at byte {offset}, was changed or cut: its checksum differs"
            raise EscalaError("RES-CORRUPT", str(path), what, next_step="--repair keeps the others")
        else:
            return Journal(tuple(records), body)
    return Journal(tuple(records))


def set_torn_aside(path: Path) -> Path | None:
    """Move a torn tail into a file beside the log. Returns that file; None: the tail is whole.

    Raises ENV-DISK; the tail then stays where it is.
    """
    with disk_errors(path), suppress(FileNotFoundError), path.open("r+b") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            begin = view.rfind(b"\n") + 1
            tail = view[begin:]
        if not tail or _verifies(tail):
            return None
        side = _free_name(path, "torn")
        write_atomic(side, tail)
        file.truncate(begin)
        os.fsync(file.fileno())
        return side
    return None


def repair(path: Path) -> int:
    """Keep the lines that verify, move the others into a file beside the log. Returns how many were moved.

    Raises ENV-DISK; the log is then as it was.
    """
    kept: list[bytes] = []
    damaged: list[bytes] = []
    for _, _, line in _lines(path):
        body = line.removesuffix(b"\n")
        (kept if _verifies(body) else damaged).append(body + b"\n")
    if damaged:
        write_atomic(_free_name(path, "damaged"), b"".join(damaged))
        write_atomic(path, b"".join(kept))
    return len(damaged)


def newest(records: Iterable[Record]) -> dict[str, Record]:
    """The last record of each trial, by the trial's id."""
    return {record.id: record for record in records}


def finished(record: Record) -> bool:
    """Whether a trial needs no further run: whatever its outcome, it was not cut short from outside."""
    return record.outcome != "interrupted"


def _encode(record: Record) -> bytes:
    options = {"options": record.trial.options, "point": record.trial.point}
    if key := not_finite(options, "trial"):
        raise EscalaError("CFG-RANGE", key, "is not a finite number", next_step="give it a finite value")
    fields = to_plain(record)
    if record.reason:
        fields["reason"] = scrub(fields["reason"])
    schema = fields.pop("schema")
    rest = msgspec.json.encode({"schema": schema, **fields})[1:]
    return _START + _sum(rest) + b'",' + rest + b"\n"


def _decode(body: bytes, where: str, curves: bool) -> Record:
    schema = _SCHEMA_KEY.match(body, _REST)
    if schema and int(schema[1]) > SCHEMA:
        what = f"the record has schema {int(schema[1])}, this version reads up to {SCHEMA}"
        raise EscalaError("RES-SCHEMA", where, what, next_step="install the version of escala that wrote it")
    try:
        if curves:
            return _WHOLE.decode(body)
        return Record(**msgspec.structs.asdict(_SLIM.decode(body)))
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        # The sum is right, so this is what was written, by a version with other fields or by another program.
        raise EscalaError(
            "RES-SCHEMA",
            where,
            f"the record is whole, but no record of schema {SCHEMA}: {error}",
            next_step="install the version of escala that wrote it",
        ) from error


def _lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Number from 1, first byte and content of each line, with its newline if it has one."""
    offset = 0
    with disk_errors(path, doing="read"), suppress(FileNotFoundError), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            yield number, offset, line
            offset += len(line)


def _verifies(body: bytes) -> bool:
    if not body.startswith(_START) or body[_SUM_END:_REST] != b'",':
        return False
    return body[len(_START) : _SUM_END] == _sum(memoryview(body)[_REST:])


def _sum(rest: bytes | memoryview) -> bytes:
    return blake2b(rest, digest_size=8).hexdigest().encode()


def _free_name(path: Path, word: str) -> Path:
    number = 1
    while os.path.lexists(side := path.with_name(f"{path.stem}.{word}-{number}{path.suffix}")):
        number += 1
    return side
