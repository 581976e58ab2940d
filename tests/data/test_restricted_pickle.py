from __future__ import annotations

import os
import pickle
import pickletools
import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from escala.data import restricted_pickle
from escala.data.restricted_pickle import DamagedPickle, load
from escala.terms.errors import EscalaError, Exit

ROWS = np.arange(24, dtype=np.uint8).reshape(4, 6)

shared_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def short(data: bytes) -> bytes:
    return b"U" + bytes([len(data)]) + data


def python2_array(
    content: bytes = ROWS.tobytes(), kind: bytes = b"u1", module: bytes = b"numpy.core.multiarray"
) -> bytes:
    """An array [4, 6] as Python 2 with an old numpy writes it: opcode by opcode, strings as bytes."""
    number = b"cnumpy\ndtype\n" + short(kind) + b"K\x00K\x01\x87R(K\x03" + short(b"|") + b"NNN"
    number += b"J\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    begin = b"c" + module + b"\n_reconstruct\ncnumpy\nndarray\nK\x00\x85" + short(b"b") + b"\x87R"
    return begin + b"(K\x01K\x04K\x06\x86" + number + b"\x89T" + struct.pack("<i", len(content)) + content + b"tb"


def python2(*items: tuple[bytes, bytes]) -> bytes:
    return b"\x80\x02}(" + b"".join(short(key) + value for key, value in items) + b"u."


def loaded(tmp_path: Path, data: bytes) -> dict[str, Any]:
    (tmp_path / "batch").write_bytes(data)
    return load(tmp_path / "batch")


def damaged(tmp_path: Path, data: bytes) -> str:
    with pytest.raises(DamagedPickle) as caught:
        loaded(tmp_path, data)
    return str(caught.value)


def unsafe(tmp_path: Path, data: bytes) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        loaded(tmp_path, data)
    assert (caught.value.code, caught.value.exit) == ("SEC-PICKLE", Exit.UNSAFE)
    assert caught.value.where == str(tmp_path / "batch")
    return caught.value


def test_what_a_file_names_is_told_in_short(tmp_path: Path) -> None:
    long = b"x" * 100_000
    assert len(unsafe(tmp_path, b"cos\n" + long + b"\n.").what) < 150
    assert len(damaged(tmp_path, b"cnumpy\ndtype\n(V" + long + b"\ntR.")) < 200
    assert len(damaged(tmp_path, b"Np" + b"9" * 4000 + b"\n.")) < 200


@pytest.mark.parametrize("module", [b"numpy.core.multiarray", b"numpy._core.multiarray"])
def test_a_file_of_python_2(tmp_path: Path, module: bytes) -> None:
    data = python2((b"data", python2_array(module=module)), (b"labels", b"](K\x03K\x01e"), (b"name", short(b"x\xff")))
    found = loaded(tmp_path, data)
    assert found["labels"] == [3, 1]
    assert found["name"] == b"x\xff"
    assert found["data"].dtype == np.uint8
    np.testing.assert_array_equal(found["data"], ROWS)
    # The file written by hand is one that Python and numpy understand alike.
    np.testing.assert_array_equal(pickle.loads(data, encoding="latin1")["data"], ROWS)  # noqa: S301


@pytest.mark.parametrize("protocol", range(5))
@pytest.mark.parametrize("array", [ROWS, np.asfortranarray(ROWS), ROWS.astype(">i4"), np.zeros((1, 3), np.int64)])
def test_files_of_python_3(tmp_path: Path, protocol: int, array: np.ndarray) -> None:
    content = {"data": array, b"labels": [0, 255, 70_000], "names": ["a", "ü"], "bytes": b"\x80"}
    found = loaded(tmp_path, pickle.dumps(content, protocol))
    np.testing.assert_array_equal(found.pop("data"), array)
    assert found == {"labels": [0, 255, 70_000], "names": ["a", "ü"], "bytes": b"\x80"}


class Planted:
    """Asks for any call."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = (function, arguments)

    def __reduce__(self) -> Any:
        return self.call


def test_a_foreign_name_is_not_run(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    for protocol in range(6):
        data = pickle.dumps({"data": ROWS.tolist(), "labels": [Planted(os.mkdir, str(marker))]}, protocol)
        assert f"{os.mkdir.__module__}.mkdir" in unsafe(tmp_path, data).what
    pickle.loads(data)  # noqa: S301
    assert marker.exists()


FOREIGN = [
    ("os", "system"),
    ("planted", "dtype"),
    ("numpy", "encode"),
    ("posix", "system"),
    ("builtins", "eval"),
    ("__builtin__", "getattr"),
    ("numpy", "load"),
    ("numpy", "dtype.newbyteorder"),
    ("numpy.core.multiarray", "fromfile"),
    ("numpy._core.numeric", "_frombuffer"),
    ("numpy.core", "multiarray._reconstruct"),
    ("_codecs", "encode.__class__"),
    ("_codecs", "lookup"),
    ("copyreg", "_reconstructor"),
]


@pytest.mark.parametrize(("module", "name"), FOREIGN)
def test_foreign_names(tmp_path: Path, module: str, name: str) -> None:
    assert f"asks for {module}.{name}," in unsafe(tmp_path, f"c{module}\n{name}\n.".encode()).what
    stacked = b"\x80\x04" + b"".join(b"\x8c" + bytes([len(word)]) + word.encode() for word in (module, name))
    assert f"asks for {module}.{name}," in unsafe(tmp_path, stacked + b"\x93.").what
    assert "asks for" in unsafe(tmp_path, f"(i{module}\n{name}\n.".encode()).what


def test_numpy_itself_is_given_nothing(tmp_path: Path) -> None:
    """An array of objects whose type denies it: numpy would take the bytes for addresses."""
    assert "'O8'" in damaged(tmp_path, python2((b"data", python2_array(kind=b"O8"))))
    for kind in (b"f8", b"S4", b"V9", b"u3", b"", b"u1,u1"):
        assert "whole numbers" in damaged(tmp_path, python2((b"data", python2_array(kind=kind))))
    assert "in a way" in damaged(tmp_path, b"cnumpy\nndarray\n(K\x01tR.")


def test_an_array_of_other_length_than_promised(tmp_path: Path) -> None:
    what = damaged(tmp_path, python2((b"data", python2_array(ROWS.tobytes()[:-1]))))
    assert what == "holds an array of 23 bytes; its shape (4, 6) needs 24"


def test_what_is_hung_on_a_stand_in_is_gone_with_the_file(tmp_path: Path) -> None:
    poison = b"\x80\x02cnumpy\ndtype\nN}" + b"X\x04\x00\x00\x00evilK\x01s\x86b0}."
    assert loaded(tmp_path, poison) == {}
    assert loaded(tmp_path, python2((b"data", python2_array())))["data"].shape == (4, 6)


def test_places_far_outside_take_no_memory(tmp_path: Path) -> None:
    tracemalloc.start()
    for place in (b"r\xff\xff\xff\x7f", b"p2147483647\n"):
        assert "2,147,483,647" in damaged(tmp_path, b"\x80\x02}" + place + b".")
    damaged(tmp_path, b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b"x.")
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


@pytest.mark.parametrize(
    "nested",
    [
        b")" + b"2\x86" * 60,  # a pair of a pair of a pair, each twice the same
        b")q\x00" + b"".join(b"h\x00h\x00\x86q\x00" for _ in range(60)),
        b")" + b"22\x87" * 60,
        b")\x94" + b"".join(b"(h%ch%c\x91\x94" % (n, n) for n in range(60)),
    ],
)
def test_values_that_hold_each_other_again_and_again_take_no_time(tmp_path: Path, nested: bytes) -> None:
    # As a key the outermost has to be looked through: 2 to the 60 values.
    assert "again and again" in damaged(tmp_path, b"\x80\x04}" + nested + b"K\x01s.")


DEEP = b")" + b"\x85" * 100_000
"""A pair of brackets in a pair of brackets, so deep that to find its hash takes more than a process's stack."""
ALIKE = b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x1f"
"""2 to the 61 less 1: all its multiples have one hash, so that each of them is compared with all others."""


@pytest.mark.parametrize("key", [DEEP, ALIKE, b"G" + b"\0" * 8, b"N", b"\x88", b"(t", b"(\x91"])
@pytest.mark.parametrize(
    "taken",
    [
        b"}%bK\x01s",
        b"}(%bK\x01u",
        b"}(X\x01\0\0\0aK\x01%bK\x02u",
        b"(%bK\x01d",
        b"\x8f(%b\x90",
        b"(%b\x91",
        b"}%b\x94K\x01s",
        b"}%b2K\x01s",
        b"}%bq\x000h\x00K\x01s",
        b"}%bNN\x86bK\x01s",
    ],
)
def test_what_is_no_name_is_never_hashed(tmp_path: Path, key: bytes, taken: bytes) -> None:
    assert "no name" in damaged(tmp_path, b"\x80\x04" + taken % key + b".")


@pytest.mark.parametrize("copy", [b"h\x01h\x00R", b"h\x02h\x03b"])
def test_a_text_is_not_copied_again_and_again(tmp_path: Path, copy: bytes) -> None:
    text = b"X" + struct.pack("<I", 20_000) + b"x" * 20_000 + b"q\x05"
    calls = b"c_codecs\nencode\nq\x01" + text + b"X\x06\0\0\0latin1\x86q\x0000"
    # An array of a text, as Python 3 writes it for Python 2, given its content once more.
    number = b"cnumpy\ndtype\nX\x02\0\0\0u1\x85R(K\x03X\x01\0\0\0|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\0tb"
    array = b"cnumpy.core.multiarray\n_reconstruct\n(tRq\x02(K\x01M\x20\x4e\x85" + number + b"\x89h\x05tq\x03b"
    once = b"\x80\x02}" + calls + array + b"0"
    assert loaded(tmp_path, once + copy + b"0.") == {}
    assert "copied again and again" in damaged(tmp_path, once + copy * 2_000 + b".")


@pytest.mark.parametrize(
    "nested",
    [
        b"]q\x00K\x01a0" + b"".join(b"]q%c(h%ch%ce0" % (n, n - 1, n - 1) for n in range(1, 60)),
        b"]\x94K\x01a0" + b"".join(b"]\x94(h%ch%ce0" % (n, n) for n in range(59)),
        b"}q\x00U\x01aK\x01s0" + b"".join(b"}q%c(U\x01ah%cU\x01bh%cu0" % (n, n - 1, n - 1) for n in range(1, 60)),
    ],
)
def test_what_is_numbered_before_it_is_filled_counts_as_filled(tmp_path: Path, nested: bytes) -> None:
    assert "hold each other again" in damaged(tmp_path, b"\x80\x04}U\x01k" + nested + b"h\x3bs.")


@pytest.mark.parametrize(
    "grown",
    [
        b"]q\x01h\x01a",  # a list within itself
        b"]q\x01]q\x02h\x01ah\x01h\x02a",  # two in each other
        b"}q\x01U\x01ah\x01s",
        b"]q\x01\x85h\x01K\x01a",  # one that a pair of brackets holds
        b"\x8fq\x01\x85h\x01(U\x01a\x90",
    ],
)
def test_nothing_is_added_to_what_others_hold(tmp_path: Path, grown: bytes) -> None:
    assert "hold already" in damaged(tmp_path, b"\x80\x04}U\x01k" + grown + b"s.")


def test_no_more_instructions_than_a_batch_could_need(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Of CIFAR-100: two labels and a name of each of 50,000 rows.
    rows = pickle.dumps({"fine": [7] * 50_000, "coarse": [7] * 50_000, "names": [f"{n}" for n in range(50_000)]}, 2)
    assert sum(1 for _ in pickletools.genops(rows)) * 5 < restricted_pickle._MOST_INSTRUCTIONS
    monkeypatch.setattr(restricted_pickle, "_MOST_INSTRUCTIONS", 1_000)
    assert loaded(tmp_path, b"\x80\x02(" + b"]" * 995 + b"1}.") == {}
    assert damaged(tmp_path, b"\x80\x02(" + b"]" * 996 + b"1}.") == "has more than 1,000 instructions"


@pytest.mark.parametrize("line", [b"S%s", b"S'%s", b'S%s"', b"S'%s\"", b"F%s"])
def test_a_line_that_cannot_be_read_is_not_written_out(tmp_path: Path, line: bytes) -> None:
    many = 2_000_000
    content = b"\x80\x02}" + line % (b"\0" * many) + b"\nK\x01s."
    tracemalloc.start()
    try:
        assert "neither number nor text" in damaged(tmp_path, content)
        assert tracemalloc.get_traced_memory()[1] < 5 * many
    finally:
        tracemalloc.stop()


def test_long_lines_of_text_are_read(tmp_path: Path) -> None:
    long = "x" * 200_000
    assert loaded(tmp_path, b"(S'a'\nS'" + long.encode() + b"'\nd.") == {"a": long.encode()}
    assert loaded(tmp_path, pickle.dumps({"a": long}, 0)) == {"a": long}


def test_a_value_that_is_shared_a_little_is_read(tmp_path: Path) -> None:
    shared = (1, 2)
    found = loaded(tmp_path, pickle.dumps({"rows": [shared] * 1000}))
    assert found["rows"] == [shared] * 1000


@pytest.mark.parametrize("shape", [b"(" + b"K\x01" * 65 + b"t", b"\x8a\xff" + b"\x7f" * 255 + b"K\x06\x86"])
def test_a_shape_that_takes_long_to_multiply_is_refused(tmp_path: Path, shape: bytes) -> None:
    spoilt = python2_array().replace(b"(K\x01K\x04K\x06\x86", b"(K\x01" + shape, 1)
    assert "shape is damaged" in damaged(tmp_path, python2((b"data", spoilt)))


def test_cut_anywhere(tmp_path: Path) -> None:
    data = python2((b"data", python2_array()), (b"labels", b"](K\x03K\x01e"))
    for length in range(len(data)):
        damaged(tmp_path, data[:length])
    assert "expected 24 bytes in a string4, but only 10 remain" in damaged(
        tmp_path, data[: data.index(ROWS.tobytes()) + 10]
    )


@pytest.mark.parametrize("content", [[1], 3, None, b"x", {3: 1}, {None: 1}])
def test_what_is_no_dictionary_of_names(tmp_path: Path, content: object) -> None:
    assert damaged(tmp_path, pickle.dumps(content, 2)).startswith("holds")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(EscalaError) as caught:
        load(tmp_path / "none")
    assert caught.value.code == "DATA-PATH"


@shared_folder
@given(st.lists(st.tuples(st.integers(0), st.binary(min_size=1, max_size=3)), min_size=1, max_size=5))
def test_damage_is_refused_or_harmless(tmp_path: Path, changes: list[tuple[int, bytes]]) -> None:
    data = python2((b"data", python2_array()), (b"labels", b"](K\x03K\x01e"))
    for at, new in changes:
        at %= len(data)
        data = data[:at] + new + data[at + len(new) :]
    try:
        found = loaded(tmp_path, data)
    except DamagedPickle:
        return
    except EscalaError as error:
        assert error.code == "SEC-PICKLE"  # noqa: PT017
        return
    assert all(isinstance(key, str) for key in found)


@shared_folder
@given(st.binary(max_size=60))
def test_any_bytes(tmp_path: Path, data: bytes) -> None:
    with suppress(DamagedPickle, EscalaError):
        loaded(tmp_path, data)


@pytest.mark.parametrize(
    "data", [b"F" + b"x" * 5000 + b"\n.", b"S" + b"x" * 5000 + b"\n.", b"g" + b"9" * 4000 + b"\n."]
)
def test_an_error_that_quotes_the_file_is_told_in_short(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(DamagedPickle) as caught:
        loaded(tmp_path, data)
    assert len(str(caught.value)) < 120
