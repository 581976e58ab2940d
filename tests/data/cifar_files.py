"""Small sets in the layouts that CIFAR is published in, and what reading one gives."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from escala.data import find
from escala.data.base import PARTS, Source
from escala.terms.errors import EscalaError, Exit

NAMES = {10: tuple(f"kind_{number}" for number in range(10)), 100: tuple(f"kind_{number}" for number in range(100))}
COARSE = [f"group_{number}" for number in range(20)]
ROWS = {"train": 200, "test": 40}
"""Rows of each file, so that every class has some."""


def batches(classes: int) -> dict[str, tuple[np.ndarray, list[int]]]:
    """What each file holds, under its name in the python version: pixels [rows, 3072], labels."""
    random = np.random.default_rng(classes)
    train = [f"data_batch_{number}" for number in range(1, 6)] if classes == 10 else ["train"]
    found = {}
    for name in (*train, "test_batch" if classes == 10 else "test"):
        rows = ROWS["test" if name.startswith("test") else "train"]
        found[name] = (random.integers(0, 256, (rows, 3072), np.uint8), [row % classes for row in range(rows)])
    return found


def python2(value: Any) -> bytes:
    """A value as Python 2 writes it with protocol 2: its strings are bytes without an encoding."""
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, str):
        return b"T" + struct.pack("<i", len(value)) + value.encode()
    if isinstance(value, list):
        return b"](" + b"".join(map(python2, value)) + b"e"
    if isinstance(value, dict):
        return b"}(" + b"".join(python2(key) + python2(item) for key, item in value.items()) + b"u"
    assert isinstance(value, np.ndarray)
    number = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    begin = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01"
    content = b"T" + struct.pack("<i", value.size) + value.tobytes()
    return begin + python2(value.shape[0]) + python2(value.shape[1]) + b"\x86" + number + b"\x89" + content + b"tb"


def dumped(value: object) -> bytes:
    return b"\x80\x02" + python2(value) + b"."


def batch(name: str, classes: int, pixels: np.ndarray, labels: list[int]) -> dict[str, object]:
    files = [f"picture_{row}.png" for row in range(len(labels))]
    if classes == 10:
        return {"batch_label": name, "labels": labels, "data": pixels, "filenames": files}
    coarse = [label // 5 for label in labels]
    return {"filenames": files, "batch_label": name, "fine_labels": labels, "coarse_labels": coarse, "data": pixels}


def write_python(folder: Path, classes: int) -> Path:
    folder.mkdir(parents=True)
    for name, (pixels, labels) in batches(classes).items():
        (folder / name).write_bytes(dumped(batch(name, classes, pixels, labels)))
    names = list(NAMES[classes])
    if classes == 10:
        meta: dict[str, object] = {"num_cases_per_batch": 100, "label_names": names, "num_vis": 3072}
        (folder / "batches.meta").write_bytes(dumped(meta))
    else:
        (folder / "meta").write_bytes(dumped({"fine_label_names": names, "coarse_label_names": COARSE}))
    (folder / "readme.html").write_text("about the set")
    return folder


def write_binary(folder: Path, classes: int) -> Path:
    folder.mkdir(parents=True)
    for name, (pixels, labels) in batches(classes).items():
        heads = [[label] if classes == 10 else [label // 5, label] for label in labels]
        (folder / f"{name}.bin").write_bytes(np.hstack([np.array(heads, np.uint8), pixels]).tobytes())
    if classes == 10:
        (folder / "batches.meta.txt").write_text("\n".join(NAMES[10]) + "\n\n")
    else:
        (folder / "fine_label_names.txt").write_text("\n".join(NAMES[100]) + "\n")
        (folder / "coarse_label_names.txt").write_text("\n".join(COARSE) + "\n")
    return folder


def opened(path: Path) -> Source:
    found = find(str(path), {})
    assert isinstance(found, Source)
    return found


def read(source: Source) -> None:
    source.facts()
    for part in PARTS:
        source.targets(part)
        for _ in source.blocks(part):
            pass


def refused(source: Source, code: str) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        read(source)
    assert caught.value.code == code
    assert caught.value.exit == (Exit.UNSAFE if code.startswith("SEC") else Exit.DATA)
    return caught.value
