"""Text files as text, with the place of what is none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from escala.data import utf8
from escala.data.utf8 import LONGEST_LINE, lines
from escala.terms.errors import EscalaError


def written(folder: Path, data: bytes) -> Path:
    path = folder / "some.txt"
    path.write_bytes(data)
    return path


def refused(folder: Path, data: bytes) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        list(lines(written(folder, data)))
    return caught.value


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.sampled_from("aé中\U0001f600\r\n \x0b\x85\u2028"), min_size=1), st.integers(1, 7))
def test_every_byte_comes_back_in_lines_whatever_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, at_once: int
) -> None:
    monkeypatch.setattr(utf8, "_AT_ONCE", at_once)
    found = list(lines(written(tmp_path, text.encode())))
    assert "".join(found) == text
    assert found == re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(min_size=8), st.integers(3, 9))
def test_what_is_no_utf8_is_refused_at_its_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, at_once: int
) -> None:
    monkeypatch.setattr(utf8, "_AT_ONCE", at_once)
    # A mark has tests of its own.
    data = b"a" + data
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        place = error.start
    else:
        place = len(data)
    place = min([place, *([data.index(b"\0")] if b"\0" in data else [])])
    if place == len(data):
        assert "".join(lines(written(tmp_path, data))) == text
        return
    line = 1 + len(re.findall(rb"\r\n|\r|\n", data[:place]))
    assert refused(tmp_path, data).where.endswith(f"some.txt, byte {place}, line {line}")


def test_a_byte_of_an_older_encoding_is_named_with_its_place_and_the_way_out(tmp_path: Path) -> None:
    data = b"x" * 2100 + b"\n" + b"y" * 49 + b"\xe4 and more\n"
    error = refused(tmp_path, data)
    assert error.code == "DATA-ENC"
    assert error.exit == 3
    assert error.where == f"{tmp_path / 'some.txt'}, byte 2150, line 2"
    assert "0xE4" in error.what
    assert "iconv -f" in error.next_step


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-be", "utf-16-le"])
def test_wide_encodings_are_known_by_their_mark(tmp_path: Path, encoding: str) -> None:
    mark = "" if encoding in ("utf-16", "utf-32") else "\ufeff"
    error = refused(tmp_path, (mark + "Grüße\n").encode(encoding))
    assert error.code == "DATA-ENC"
    assert f"mark of {encoding[:6].upper()}" in error.what
    assert f"iconv -f {encoding[:6].upper()} " in error.next_step


@pytest.mark.parametrize(("encoding", "place"), [("UTF-16LE", 1), ("UTF-16BE", 0)])
def test_a_wide_encoding_without_a_mark_is_refused_for_its_zero_bytes(
    tmp_path: Path, encoding: str, place: int
) -> None:
    error = refused(tmp_path, "plain\n".encode(encoding))
    assert error.code == "DATA-ENC"
    assert f", byte {place}, line 1" in error.where
    assert f"iconv -f {encoding} " in error.next_step


def test_the_mark_of_utf8_is_no_text_and_offsets_count_it(tmp_path: Path) -> None:
    assert list(lines(written(tmp_path, b"\xef\xbb\xbfone\ntwo"))) == ["one\n", "two"]
    # Only in front is it a mark.
    assert list(lines(written(tmp_path, "a\ufeffb".encode()))) == ["a\ufeffb"]
    assert ", byte 5, line 1" in refused(tmp_path, b"\xef\xbb\xbfab\xff").where


def test_old_line_ends_are_line_ends(tmp_path: Path) -> None:
    assert list(lines(written(tmp_path, b"one\rtwo\r\rthree"))) == ["one\r", "two\r", "\r", "three"]


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf"])
def test_an_empty_file_is_refused(tmp_path: Path, data: bytes) -> None:
    assert refused(tmp_path, data).code == "DATA-EMPTY"


def test_an_endless_line_is_refused_where_it_begins_and_not_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    with path.open("wb") as file:
        file.write(b"first\n")
        file.write(b"x" * (LONGEST_LINE + 1))
        # A hole: 100 MB that take no room.
        file.truncate(100_000_000)
    with pytest.raises(EscalaError) as caught:
        list(lines(path))
    assert caught.value.code == "DATA-ENC"
    assert caught.value.where.endswith(", byte 6, line 2")


@pytest.mark.parametrize("extra", [0, 1])
def test_a_line_may_have_ten_million_bytes_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: int
) -> None:
    monkeypatch.setattr(utf8, "LONGEST_LINE", 50)
    monkeypatch.setattr(utf8, "_AT_ONCE", 8)
    data = b"a\n" + b"x" * (49 + extra) + b"\nlast\n"
    if extra:
        assert ", byte 2, line 2" in refused(tmp_path, data).where
    else:
        assert len(list(lines(written(tmp_path, data)))) == 3
