"""A disk that refuses leaves the log as it was."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from escala.store import files, journal
from escala.store.journal import Journal, append, read
from escala.terms.errors import EscalaError, Exit
from escala.terms.record import Record

MakeRecord = Callable[..., Record]


def ids(found: Journal) -> list[str]:
    return [record.id for record in found.records]


def test_a_partial_append_is_rolled_back(log: Path, make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch) -> None:
    before = log.read_bytes()
    written: list[int] = []
    real_write = os.write

    def nearly_full(descriptor: int, data: memoryview) -> int:
        if written:
            raise OSError(28, "")
        written.append(real_write(descriptor, data[:100]))
        return written[0]

    monkeypatch.setattr(files.os, "write", nearly_full)
    with pytest.raises(EscalaError, match="No space left on device"):
        append(log, make_record("d"))
    assert written == [100]
    assert log.read_bytes() == before


def test_a_disk_that_fails_to_sync_loses_the_new_record_only(
    log: Path, make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = log.read_bytes()

    def fail(descriptor: int) -> None:
        raise OSError(5, "")

    monkeypatch.setattr(journal.os, "fsync", fail)
    with pytest.raises(EscalaError, match="Input/output error"):
        append(log, make_record("d"))
    assert log.read_bytes() == before


def test_a_full_disk_stops_the_log_at_a_whole_record(
    small_disk: Callable[[str], Path], make_record: MakeRecord
) -> None:
    place = small_disk("size=64k")
    path = place / "records.jsonl"
    (place / "experiment.json").write_bytes(b"earlier")
    count, before, error = 0, b"", None
    while not error and count < 200:
        try:
            append(path, make_record(f"r{count}"))
            before = path.read_bytes()
            count += 1
        except EscalaError as refused:
            error = refused
    assert error is not None, "the disk never filled"
    text = str(error)
    assert (error.code, error.exit) == ("ENV-DISK", Exit.DEVICE)
    assert f"{path}: cannot write: No space left on device" in text
    assert "bytes needed" in text
    assert "bytes free" in text
    assert count > 10
    assert path.read_bytes() == before
    assert ids(read(path)) == [f"r{number}" for number in range(count)]
    assert (place / "experiment.json").read_bytes() == b"earlier"
    assert files.names_in(place) == {"records.jsonl", "experiment.json"}

    small_disk("size=1m")
    append(path, make_record("after"))
    assert path.read_bytes().startswith(before)
    assert ids(read(path))[-1] == "after"


def test_a_torn_tail_stays_where_no_room_is_to_set_it_aside(
    small_disk: Callable[[str], Path], make_record: MakeRecord
) -> None:
    place = small_disk("size=64k")
    path = place / "records.jsonl"
    append(path, make_record("a"))
    with path.open("ab") as file:
        file.write(b'{"checksum":"torn' + b"x" * 57_000)
    before = path.read_bytes()
    with pytest.raises(EscalaError, match="No space left on device"):
        append(path, make_record("b"))
    assert path.read_bytes() == before
    assert files.names_in(place) == {"records.jsonl"}
    small_disk("size=1m")
    append(path, make_record("b"))
    assert ids(read(path)) == ["a", "b"]


def test_a_log_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.mkdir()
    with pytest.raises(EscalaError, match=r"ENV-DISK.*records\.jsonl: cannot read: Is a directory"):
        read(path)
