"""Labels outside the classes, and what is no label at all: found, and told in short."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from cifar_files import batch, batches, dumped, opened, refused, write_binary, write_python


@pytest.mark.parametrize(("classes", "label"), [(10, 10), (10, 255), (100, 100), (100, 200)])
def test_a_label_outside_in_the_binary_version(tmp_path: Path, classes: int, label: int) -> None:
    folder = write_binary(tmp_path / "set", classes)
    path = folder / ("data_batch_4.bin" if classes == 10 else "train.bin")
    data = bytearray(path.read_bytes())
    width = 3073 if classes == 10 else 3074
    data[width * 7 + width - 3073] = label
    path.write_bytes(data)
    error = refused(opened(folder), "DATA-LABEL")
    assert error.where == str(path)
    assert error.what == f"the label of row 7 (from 0) is {label}; labels out of range: 1"
    assert error.expected == f"labels go from 0 to {classes - 1}"


@pytest.mark.parametrize("label", [10, -1, 2**31 - 1, "cat", [3]])
def test_a_label_outside_in_the_python_version(tmp_path: Path, label: Any) -> None:
    folder = write_python(tmp_path / "set", 10)
    pixels, labels = batches(10)["data_batch_5"]
    (folder / "data_batch_5").write_bytes(dumped(batch("x", 10, pixels, [*labels[:7], label, *labels[8:]])))
    error = refused(opened(folder), "DATA-LABEL")
    assert error.where == str(folder / "data_batch_5")
    assert "row 7 (from 0) is" in error.what
    assert (repr(label) if isinstance(label, int) else "cat" if label == "cat" else "[3]") in error.what


DEEP = b"]" * 20_000 + b"a" * 19_999
AGAIN = b"]q\x01K\x01a0" + b"".join(b"]q%c(h%ch%ce0" % (n + 1, n, n) for n in range(1, 60)) + b"h\x3c"
"""Lists that are numbered before they are filled, each of them twice in the next: 2 to the 60 in the last."""


@pytest.mark.parametrize(
    ("label", "told"),
    [
        (2**40_000, "a number of 40,001 bits"),
        (-(2**40_000), "a number of 40,001 bits"),
        ([2**40_000], "[a number of 40,001 bits]"),
        (2**127, str(2**127)),
        (b"x" * 10_000, "b'xxx"),
        ("x" * 10_000, "'xxx"),
    ],
    ids=["number", "negative", "number in a list", "128 bits", "bytes", "text"],
)
def test_a_label_without_end_is_told_in_short(tmp_path: Path, label: Any, told: str) -> None:
    folder = write_python(tmp_path / "set", 10)
    pixels, labels = batches(10)["data_batch_5"]
    content = batch("x", 10, pixels, [*labels[:7], label, *labels[8:]])
    (folder / "data_batch_5").write_bytes(pickle.dumps(content, 2))
    error = refused(opened(folder), "DATA-LABEL")
    assert f"row 7 (from 0) is {told}" in error.what
    assert len(error.what) < 100


@pytest.mark.parametrize(
    ("label", "code", "told"),
    [(DEEP, "DATA-LABEL", "row 0 (from 0) is [[["), (AGAIN, "DATA-CIFAR", "hold each other again and again")],
    ids=["deep", "again and again"],
)
def test_a_label_of_lists_in_lists_is_told_in_short(tmp_path: Path, label: bytes, code: str, told: str) -> None:
    folder = write_python(tmp_path / "set", 10)
    pixels, labels = batches(10)["data_batch_5"]
    content = pickle.dumps(batch("x", 10, pixels, labels), 2)
    # Written once more on top, as the last word on the labels.
    last = b"X\x06\0\0\0labels(" + label + b"K\x01" * (len(labels) - 1) + b"ls."
    (folder / "data_batch_5").write_bytes(content[:-1] + last)
    assert told in refused(opened(folder), code).what
