"""Folders of small images, and files damaged in each way that people report."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def encoded(seed: int, *, size: tuple[int, int] = (8, 6), mode: str = "L", form: str = "PNG") -> bytes:
    """An image of noise; `size` is (width, height)."""
    numbers = np.random.default_rng(seed)
    shape = (size[1], size[0]) if mode == "L" else (size[1], size[0], 3)
    stream = io.BytesIO()
    Image.fromarray(numbers.integers(0, 256, shape, dtype=np.uint8)).save(stream, form)
    return stream.getvalue()


def promised(width: int, height: int) -> bytes:
    """A PNG whose header promises so many pixels, and which holds next to none."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(100))), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def write_flat(folder: Path, classes: Mapping[str, int], **form: Any) -> Path:
    """FOLDER/CLASS/NUMBER.png, so many of each class."""
    seed = 0
    for name, count in classes.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        for number in range(count):
            (folder / name / f"{number:04}.png").write_bytes(encoded(seed, **form))
            seed += 1
    return folder


def write_parts(folder: Path, parts: Mapping[str, Mapping[str, int]], **form: Any) -> Path:
    """FOLDER/PART/CLASS/NUMBER.png."""
    for part, classes in parts.items():
        (folder / part).mkdir(parents=True, exist_ok=True)
        write_flat(folder / part, classes, **form)
    return folder
