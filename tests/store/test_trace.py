from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from escala.store.trace import About, Window, read_trace, write_trace
from escala.terms.errors import EscalaError

ABOUT = About("single-r0-12ab", (Window("train", 1, 0.5, 2.0), Window("validation", 1, 2.0, 2.5)), {"cuda:0": 70.0})


def test_a_trace_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "one.safetensors"
    arrays = {"seconds": np.array([0.0, 0.5, 1.0]), "cuda:0/watts": np.array([70, np.nan, 90], dtype=np.float32)}
    write_trace(path, ABOUT, arrays)
    about, found = read_trace(path)
    assert about == ABOUT
    assert set(found) == set(arrays)
    for name, values in arrays.items():
        np.testing.assert_array_equal(found[name], values)
        assert found[name].dtype == values.dtype


@pytest.mark.parametrize("content", [None, b"", b"PK\x03\x04 an archive", b"\x08\0\0\0\0\0\0\0{}      "])
def test_what_is_no_trace_is_refused(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "one.safetensors"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(EscalaError, match="is no power trace") as caught:
        read_trace(path)
    assert caught.value.code == "RES-TRACE"


def test_a_trace_cut_anywhere_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "one.safetensors"
    write_trace(path, ABOUT, {"seconds": np.arange(4.0)})
    whole = path.read_bytes()
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(EscalaError):
            read_trace(path)
