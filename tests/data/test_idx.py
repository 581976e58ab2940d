from __future__ import annotations

import gzip
import os
import re
import struct
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from idx_files import idx_bytes

from escala.data.idx import read_blocks, read_header
from escala.terms.errors import EscalaError, Exit

IMAGES = np.random.default_rng(1).integers(0, 256, (7, 5, 4), dtype=np.uint8)
RAW = idx_bytes(IMAGES)
PACKED = gzip.compress(RAW, mtime=0)

# The folder is shared by all examples of one test: each writes its whole file anew.
shared_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def read(path: Path, dimensions: int = 3) -> np.ndarray:
    return np.concatenate(list(read_blocks(read_header(path, dimensions))))


def read_or_error(path: Path) -> np.ndarray | EscalaError:
    try:
        return read(path)
    except EscalaError as error:
        return error


def refused(path: Path, dimensions: int = 3) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        read(path, dimensions)
    assert caught.value.code == "DATA-IDX"
    assert caught.value.exit == Exit.DATA
    assert str(path) in caught.value.where
    return caught.value


def test_reads_what_was_written_packed_or_not(tmp_path: Path) -> None:
    for name, data, packed in (("raw", RAW, False), ("packed.gz", PACKED, True)):
        path = tmp_path / name
        path.write_bytes(data)
        assert read_header(path, 3).packed is packed
        np.testing.assert_array_equal(read(path), IMAGES)


@pytest.mark.parametrize(("name", "data", "packed"), [("plain-name", PACKED, True), ("name.gz", RAW, False)])
def test_content_decides_not_the_name(tmp_path: Path, name: str, data: bytes, packed: bool) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    assert read_header(path, 3).packed is packed
    np.testing.assert_array_equal(read(path), IMAGES)


def test_reads_many_blocks_in_order(tmp_path: Path) -> None:
    rows = np.random.default_rng(2).integers(0, 256, (9000, 17, 16), dtype=np.uint8)
    path = tmp_path / "file"
    path.write_bytes(idx_bytes(rows))
    blocks = list(read_blocks(read_header(path, 3)))
    assert len(blocks) > 2
    np.testing.assert_array_equal(np.concatenate(blocks), rows)


def test_reads_several_gzip_members_as_one_file(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(RAW[:50]) + gzip.compress(RAW[50:]))
    np.testing.assert_array_equal(read(path), IMAGES)


@pytest.mark.parametrize(
    ("place", "value", "begins"),
    [(0, 1, "01 00 08 03"), (2, 0x0D, "00 00 0d 03"), (3, 1, "00 00 08 01")],
)
def test_wrong_magic(tmp_path: Path, place: int, value: int, begins: str) -> None:
    data = bytearray(RAW)
    data[place] = value
    path = tmp_path / "file"
    path.write_bytes(data)
    error = refused(path)
    assert error.where.endswith("byte 0")
    assert begins in error.what
    assert error.expected == "expected 00 00 08 03"


@pytest.mark.parametrize("packed", [False, True])
def test_header_counts_more_rows_than_the_body_has(tmp_path: Path, packed: bool) -> None:
    data = RAW[:4] + struct.pack(">I", 8) + RAW[8:]
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(data) if packed else data)
    error = refused(path)
    assert error.where == f"{path}{', unpacked' if packed else ''}, byte {len(RAW)}"
    assert "140 bytes after its header" in error.what
    assert error.expected == "the header promises 8 x 5 x 4 = 160 bytes"


@pytest.mark.parametrize("packed", [False, True])
def test_bytes_after_the_last_row(tmp_path: Path, packed: bool) -> None:
    data = RAW + b"xyz"
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(data) if packed else data)
    error = refused(path)
    assert error.where.endswith(f"byte {len(RAW)}")
    assert "more bytes follow" in error.what
    assert "7 x 5 x 4 = 140" in error.expected


def test_rubbish_behind_the_gzip_data(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(PACKED + b"rubbish")
    refused(path)


@pytest.mark.parametrize("sizes", [(0, 28, 28), (5, 0, 4), (5, 4, 0)])
def test_no_rows_or_no_pixels(tmp_path: Path, sizes: tuple[int, int, int]) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes([0, 0, 8, 3]) + struct.pack(">3I", *sizes))
    assert "is 0" in refused(path).what


@pytest.mark.parametrize("packed", [False, True])
def test_absurd_sizes_take_no_memory(tmp_path: Path, packed: bool) -> None:
    data = bytes([0, 0, 8, 3]) + struct.pack(">3I", 2**32 - 1, 2**32 - 1, 2**32 - 1)
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(data) if packed else data)
    tracemalloc.start()
    error = refused(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 2**20
    assert "at most 8,589,934,592" in error.expected


def test_a_large_promise_with_a_small_body_takes_little_memory(tmp_path: Path) -> None:
    data = bytes([0, 0, 8, 1]) + struct.pack(">I", 2**33 - 2**20 - 2**32) + bytes(1000)
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(data))
    tracemalloc.start()
    error = refused(path, 1)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * 2**20
    assert "1,000 bytes after its header" in error.what


def test_unpacking_stops_where_the_header_says(tmp_path: Path) -> None:
    """A small file that unpacks to 256 MiB is refused after the promised 140 bytes."""
    path = tmp_path / "file.gz"
    path.write_bytes(gzip.compress(RAW + bytes(2**28), 1))
    tracemalloc.start()
    refused(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * 2**20


@shared_folder
@given(st.integers(0, len(RAW) - 1))
def test_cut_anywhere(tmp_path: Path, length: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(RAW[:length])
    error = refused(path)
    shown = re.search(r"byte (\d+)$", error.where)
    assert shown is not None
    assert int(shown[1]) == (0 if length < 4 else length)


@shared_folder
@given(st.integers(0, len(PACKED) - 1))
def test_packed_and_cut_anywhere(tmp_path: Path, length: int) -> None:
    path = tmp_path / "file.gz"
    path.write_bytes(PACKED[:length])
    refused(path)


@shared_folder
@given(st.integers(0, 8 * len(PACKED) - 1))
def test_one_flipped_bit_in_gzip_never_changes_a_pixel(tmp_path: Path, bit: int) -> None:
    data = bytearray(PACKED)
    data[bit // 8] ^= 1 << bit % 8
    path = tmp_path / "file.gz"
    path.write_bytes(data)
    found = read_or_error(path)
    if isinstance(found, EscalaError):
        assert found.code == "DATA-IDX"
    else:
        # Some bits of the first 11 bytes, such as the time of packing, mean nothing for the content.
        assert bit < 88
        np.testing.assert_array_equal(found, IMAGES)


def test_a_wrong_gzip_checksum_is_named(tmp_path: Path) -> None:
    data = bytearray(PACKED)
    data[-8] ^= 1
    path = tmp_path / "file.gz"
    path.write_bytes(data)
    error = refused(path)
    assert "CRC" in error.what
    assert error.where == f"{path}, unpacked, byte {len(RAW)}"


@shared_folder
@given(st.binary(max_size=64), st.sampled_from([b"", b"\0\0\x08\x03", b"\x1f\x8b", b"\x1f\x8b\x08\0\0\0\0\0\0\xff"]))
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes, beginning: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(beginning + data)
    found = read_or_error(path)
    if isinstance(found, EscalaError):
        assert found.code == "DATA-IDX"
    else:
        assert found.tobytes() == (beginning + data)[16:]


@shared_folder
@given(st.integers(1, 30), st.integers(1, 9), st.integers(1, 9), st.booleans(), st.integers(0, 2**32))
def test_round_trip(tmp_path: Path, rows: int, height: int, width: int, packed: bool, seed: int) -> None:
    array = np.random.default_rng(seed).integers(0, 256, (rows, height, width), dtype=np.uint8)
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(idx_bytes(array)) if packed else idx_bytes(array))
    np.testing.assert_array_equal(read(path), array)


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    os.symlink("loop", tmp_path / "loop")
    for name, words in (
        ("folder", "is a folder"),
        ("pipe", "is a pipe"),
        ("loop", "Too many levels of symbolic links"),
        ("nothing", "No such file or directory"),
    ):
        with pytest.raises(EscalaError) as caught:
            read_header(tmp_path / name, 3)
        assert caught.value.code == "DATA-PATH"
        assert caught.value.what == words
