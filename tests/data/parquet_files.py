"""Sets in the hub's parquet layout for tests to write and to spoil; importing this skips where pyarrow is missing."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'escala[datasets]'")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'escala[datasets]'")
Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")


def png(pixels: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.asarray(pixels, np.uint8)).save(out, "PNG")
    return out.getvalue()


def described(features: dict[str, Any]) -> dict[bytes, bytes]:
    """The hub's own description of a file's columns."""
    return {b"huggingface": json.dumps({"info": {"features": features}}).encode()}


NAMES = described({"label": {"_type": "ClassLabel", "names": ["neg", "pos"]}})


def write(path: Path, columns: dict[str, Any], *, group: int = 2, metadata: dict[bytes, bytes] | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    content = pa.table(columns)
    if metadata:
        content = content.replace_schema_metadata(metadata)
    pq.write_table(content, path, row_group_size=group, write_page_checksum=True, compression="snappy")
    return path


def write_set(folder: Path, train: dict[str, Any], test: dict[str, Any] | None = None, **options: Any) -> Path:
    """Two shards of training rows and one of test rows, as the hub names them."""
    rows = len(next(iter(train.values())))
    for shard, (first, last) in enumerate(((0, rows // 2), (rows // 2, rows))):
        part = {name: values[first:last] for name, values in train.items()}
        write(folder / f"train-{shard:05}-of-00002.parquet", part, **options)
    write(folder / "test-00000-of-00001.parquet", test or train, **options)
    return folder


def images(count: int, shape: tuple[int, ...] = (4, 3)) -> dict[str, Any]:
    drawn = np.random.default_rng(count).integers(0, 256, (count, *shape), dtype=np.uint8)
    return {
        "image": [{"bytes": png(image), "path": f"{number}.png"} for number, image in enumerate(drawn)],
        "label": [number % 3 for number in range(count)],
    }


def questions(count: int) -> dict[str, Any]:
    return {
        "id": [f"q{number}" for number in range(count)],
        "title": ["of no use"] * count,
        "question": ["what is it?"] * count,
        "context": ["it is a bell"] * count,
        "answers": [{"text": ["a bell", "bell"], "answer_start": [6, 8]}] * count,
    }


TEXTS = {"text": ["one", "two\nlines", "drei: ä", ""], "label": [0, 1, 1, 0]}
