"""A log that was cut or changed never gives a changed number and never hides the good records."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escala.store import files
from escala.store.journal import Journal, append, read, repair, set_torn_aside
from escala.terms.errors import EscalaError, Exit
from escala.terms.record import Record

MakeRecord = Callable[..., Record]


def changed_values(byte: int) -> set[int]:
    """Each single bit flipped, all bits flipped, a line end, nothing, a digit."""
    flipped = {byte ^ (1 << bit) for bit in range(8)} | {byte ^ 0xFF}
    return (flipped | {ord("\n"), 0, ord("7")}) - {byte}


def ids(found: Journal) -> list[str]:
    return [record.id for record in found.records]


def test_cut_at_every_byte_of_the_last_record(log: Path) -> None:
    whole = log.read_bytes()
    begin = whole.rindex(b"\n", 0, -1) + 1
    for end in range(len(whole), begin - 1, -1):
        os.truncate(log, end)
        for curves in (True, False):
            found = read(log, curves=curves)
            # Without its newline alone the last record is still whole.
            last_is_whole = end >= len(whole) - 1
            assert ids(found) == (["a", "b", "c"] if last_is_whole else ["a", "b"])
            assert found.torn == (b"" if last_is_whole else whole[begin:end])


def test_an_append_never_glues_to_a_cut_record(log: Path, make_record: MakeRecord) -> None:
    whole = log.read_bytes()
    begin = whole.rindex(b"\n", 0, -1) + 1
    ends = [*range(begin, len(whole), 53), len(whole) - 2, len(whole) - 1]
    for end in ends:
        for side in log.parent.glob("*torn*"):
            side.unlink()
        log.write_bytes(whole[:end])
        append(log, make_record("d"))
        lost = begin < end < len(whole) - 1
        assert ids(read(log)) == (["a", "b", "c", "d"] if end == len(whole) - 1 else ["a", "b", "d"])
        sides = [side.read_bytes() for side in log.parent.glob("records.torn-*.jsonl")]
        assert sides == ([whole[begin:end]] if lost else [])


def test_each_torn_tail_gets_a_file_of_its_own(log: Path) -> None:
    for number in (1, 2):
        with log.open("ab") as file:
            file.write(b'{"checksum":"torn %d' % number)
        side = set_torn_aside(log)
        assert side == log.parent / f"records.torn-{number}.jsonl"
        assert side.read_bytes() == b'{"checksum":"torn %d' % number
    assert set_torn_aside(log) is None
    assert ids(read(log)) == ["a", "b", "c"]


@pytest.mark.parametrize("tail", [b"\0" * 4096, b"\xff", b"{", b'{"checksum":"', b" "])
def test_any_tail_without_a_newline_is_torn(log: Path, make_record: MakeRecord, tail: bytes) -> None:
    with log.open("ab") as file:
        file.write(tail)
    assert read(log).torn == tail
    append(log, make_record("d"))
    assert read(log).torn == b""
    assert ids(read(log)) == ["a", "b", "c", "d"]


def test_a_log_that_is_only_a_torn_tail_can_go_on(tmp_path: Path, make_record: MakeRecord) -> None:
    path = tmp_path / "records.jsonl"
    path.write_bytes(b'{"checksum":"01')
    append(path, make_record("a"))
    assert ids(read(path)) == ["a"]


def test_flip_every_byte_of_a_middle_record(log: Path) -> None:
    whole = log.read_bytes()
    begin = whole.index(b"\n") + 1
    end = whole.index(b"\n", begin) + 1
    # Changed in place: to write the whole file anew so often takes ten times as long on some disks.
    with log.open("r+b", buffering=0) as file:
        for place in range(begin, end):
            for value in changed_values(whole[place]):
                os.pwrite(file.fileno(), bytes([value]), place)
                with pytest.raises(EscalaError) as caught:
                    read(log, curves=place % 2 == 0)
                assert caught.value.code == "RES-CORRUPT"
                assert f"at byte {begin}," in caught.value.what
            os.pwrite(file.fileno(), whole[place : place + 1], place)
    assert ids(read(log)) == ["a", "b", "c"]


def test_flip_every_byte_of_the_last_record(log: Path) -> None:
    originals = read(log).records
    whole = log.read_bytes()
    begin = whole.rindex(b"\n", 0, -1) + 1
    with log.open("r+b", buffering=0) as file:
        for place in range(begin, len(whole) - 1):
            os.pwrite(file.fileno(), bytes([whole[place] ^ 0x11]), place)
            with pytest.raises(EscalaError, match="RES-CORRUPT"):
                read(log)
            os.pwrite(file.fileno(), whole[place : place + 1], place)
        # With its newline the line loses its end, as if it had been cut.
        os.pwrite(file.fileno(), b"\x1b", len(whole) - 1)
        assert read(log) == Journal(originals[:2], whole[begin:-1] + b"\x1b")


def test_a_damaged_line_is_named_with_its_place_and_a_way_out(log: Path) -> None:
    whole = bytearray(log.read_bytes())
    begin = whole.index(b"\n") + 1
    whole[begin + 100] ^= 1
    log.write_bytes(whole)
    with pytest.raises(EscalaError) as caught:
        read(log)
    text = str(caught.value)
    assert caught.value.exit == Exit.UNTRUSTED == 6
    assert text.startswith(f"escala: error[RES-CORRUPT] {log}: line 2, which begins at byte {begin}, ")
    assert text.endswith("; --repair keeps the others")


@pytest.mark.parametrize("line", [b"\n", b"{}\n", b"null\n", b"\xff\xfe\n", b'{"checksum":"0123456789abcdef",}\n'])
def test_a_foreign_line_is_damage(log: Path, line: bytes) -> None:
    log.write_bytes(line + log.read_bytes())
    with pytest.raises(EscalaError, match=r"RES-CORRUPT.* byte 0"):
        read(log)


@settings(max_examples=150, deadline=None)
@given(content=st.lists(st.binary(max_size=40) | st.sampled_from([b"\n", b'{"checksum":"', b'","schema":1,'])))
def test_any_bytes_are_read_or_refused(tmp_path_factory: pytest.TempPathFactory, content: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("bytes") / "records.jsonl"
    path.write_bytes(b"".join(content))
    try:
        assert read(path).records == ()
    except EscalaError as error:
        assert error.code == "RES-CORRUPT"  # noqa: PT017, both ends are right


def test_repair_keeps_the_others_and_moves_the_damaged_aside(log: Path) -> None:
    lines = log.read_bytes().splitlines(keepends=True)
    damaged = lines[1].replace(b"1234.5678", b"9234.5678")
    log.write_bytes(lines[0] + damaged + lines[2])
    assert repair(log) == 1
    assert log.read_bytes() == lines[0] + lines[2]
    assert (log.parent / "records.damaged-1.jsonl").read_bytes() == damaged
    assert ids(read(log)) == ["a", "c"]


def test_repair_takes_a_torn_tail_and_a_missing_newline_in_its_stride(log: Path) -> None:
    whole = log.read_bytes()
    log.write_bytes(b"junk\n" + whole[:-1])
    assert repair(log) == 1
    assert log.read_bytes() == whole
    log.write_bytes(b"junk\n" + whole[:-2])
    assert repair(log) == 2
    assert ids(read(log)) == ["a", "b"]
    assert files.names_in(log.parent) == {"records.jsonl", "records.damaged-1.jsonl", "records.damaged-2.jsonl"}


def test_repair_leaves_a_good_log_alone(log: Path) -> None:
    before = log.stat()
    assert repair(log) == 0
    assert log.stat().st_ino == before.st_ino
    assert files.names_in(log.parent) == {"records.jsonl"}
