"""Prepared files: what is read is what was written, and every damage of the header is seen before use."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from image_files import write_flat

from escala.data import RECOGNISERS, find
from escala.data.base import Request
from escala.data.image_prepare import prepare_images
from escala.data.prepared_images import PreparedImages, header_bytes, read_layout, recognise
from escala.data.survey import survey
from escala.terms.errors import EscalaError, Exit


def silent(*_: object) -> None:
    return None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    folder = write_flat(tmp_path_factory.mktemp("set"), {"a": 20, "b": 20})
    out = folder.parent / "set.escala"
    shares = (0.5, 0.25, 0.25)
    prepare_images(folder, out, size=(4, 3), grey=True, dtype="float16", progress=silent, shares=shares, workers=1)
    return out.read_bytes()


def written(folder: Path, data: bytes, name: str = "a.escala") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def changed(data: bytes, change: Any) -> bytes:
    """The same file with another header."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data[8 + length :]


def refused(path: Path) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        survey(PreparedImages("x", path), Request("x"))
    assert caught.value.exit == Exit.DATA
    assert "escala data prepare" in caught.value.next_step
    return caught.value


def test_reads_what_was_written(tmp_path: Path, made: bytes) -> None:
    found = PreparedImages("x", written(tmp_path, made))
    facts = found.facts()
    assert (facts.shape, facts.dtype, facts.class_names) == ((3, 4), "float16", ("a", "b"))
    assert survey(found, Request("x")).description.rows == {"train": 20, "validation": 10, "test": 10}
    assert [len(block) for block in found.blocks("train")] == [20]


def test_the_format_s_own_package_reads_it(tmp_path: Path, made: bytes) -> None:
    package = pytest.importorskip("safetensors.numpy")
    path = written(tmp_path, made)
    tensors = package.load_file(path)
    found = PreparedImages("x", path)
    assert set(tensors) == {f"{part}.{name}" for part in found.parts() for name in ("inputs", "targets")}
    for part in found.parts():
        assert (tensors[f"{part}.inputs"] == np.concatenate(list(found.blocks(part)))).all()
        assert (tensors[f"{part}.targets"] == found.targets(part)).all()


def test_reads_what_the_format_s_own_package_writes(tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy")
    path = tmp_path / "a.safetensors"
    package.save_file({"x": np.arange(6, dtype=np.float32).reshape(2, 3)}, path)
    layout = read_layout(path)
    tensor = layout.tensors["x"]
    assert (tensor.dtype, tensor.shape, tensor.size) == ("float32", (2, 3), 24)
    assert path.stat().st_size == tensor.begin + tensor.size
    assert refused(path).code == "DATA-FILE"


def test_is_recognised(tmp_path: Path, made: bytes) -> None:
    assert recognise in RECOGNISERS
    assert isinstance(find(str(written(tmp_path, made, "any.name")), {}), PreparedImages)
    assert recognise(written(tmp_path, b'{"data": [1, 2, 3]}', "a.json")) is None
    assert recognise(written(tmp_path, b"", "a.txt")) is None
    assert recognise(tmp_path) is None


def test_every_length_but_the_right_one_is_refused(tmp_path: Path, made: bytes) -> None:
    length = 8 + int.from_bytes(made[:8], "little")
    for size in (*range(0, length, 37), length, len(made) - 1):
        assert refused(written(tmp_path, made[:size])).code == "DATA-FILE"
    assert "as its header says" in refused(written(tmp_path, made + b"\0")).expected


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["train.inputs"].update(shape=[20, 3, 5]),
        lambda header: header["train.inputs"].update(shape=[-20, -3, 4]),
        lambda header: header["train.inputs"].update(shape=[20, True, 12]),
        lambda header: header["train.inputs"].update(dtype="F64"),
        lambda header: header["train.inputs"].update(data_offsets=[0, 480]),
        lambda header: header["train.inputs"].update(data_offsets=[10**30, 10**30 + 480]),
        lambda header: header["train.inputs"].pop("data_offsets"),
        lambda header: header["test.targets"].update(dtype="F32", shape=[20]),
        lambda header: header["__metadata__"].update(class_names="3"),
        lambda header: header["__metadata__"].update(class_names="[1, 2]"),
        lambda header: header["__metadata__"].update(skipped="["),
        lambda header: header["__metadata__"].update(format="other"),
        lambda header: header["__metadata__"].update(seed=0),
        lambda header: header.pop("__metadata__"),
        lambda header: header.pop("test.inputs"),
        lambda header: header.update(x=3),
    ],
)
def test_a_header_that_does_not_fit_is_refused(tmp_path: Path, made: bytes, change: Any) -> None:
    assert refused(written(tmp_path, changed(made, change))).code == "DATA-FILE"


def test_labels_outside_the_classes_are_named(tmp_path: Path, made: bytes) -> None:
    path = written(tmp_path, made)
    tensor = read_layout(path).tensors["test.targets"]
    data = bytearray(made)
    data[tensor.begin + 8 * 3] = 7
    error = refused(written(tmp_path, bytes(data)))
    assert error.code == "DATA-LABEL"
    assert "row 3 (from 0) is 7" in error.what


def test_values_that_are_not_finite_are_named(tmp_path: Path, made: bytes) -> None:
    tensor = read_layout(written(tmp_path, made)).tensors["validation.inputs"]
    data = bytearray(made)
    data[tensor.begin + 24 * 5 : tensor.begin + 24 * 5 + 2] = b"\0\x7e"
    error = refused(written(tmp_path, bytes(data)))
    assert error.code == "DATA-VALUE"
    assert "row 5 (from 0)" in error.what


def test_headers_are_aligned() -> None:
    for name in ("a", "ab", "abc", "abcdefgh"):
        begin = header_bytes({name: ("uint8", (3,))}, {"format": "x"})
        assert len(begin) % 8 == 0
        assert int.from_bytes(begin[:8], "little") == len(begin) - 8


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=120), st.booleans())
def test_any_bytes_are_refused_in_words(tmp_path_factory: pytest.TempPathFactory, data: bytes, framed: bool) -> None:
    content = len(data).to_bytes(8, "little") + data if framed else data
    assert refused(written(tmp_path_factory.mktemp("any"), content)).code == "DATA-FILE"


@settings(deadline=None, max_examples=100)
@given(st.data())
def test_any_changed_byte_of_the_header_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, made: bytes, data: st.DataObject
) -> None:
    length = 8 + int.from_bytes(made[:8], "little")
    content = bytearray(made)
    content[data.draw(st.integers(0, length - 1))] = data.draw(st.integers(0, 255))
    path = written(tmp_path_factory.mktemp("any"), bytes(content))
    ended: int = Exit.DATA
    try:
        survey(PreparedImages("x", path), Request("x"))
    except EscalaError as error:
        ended = error.exit
    assert ended == Exit.DATA
