"""IDX files in the exact published layout, for tests to write and to spoil."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

FILES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx_bytes(array: NDArray[np.uint8]) -> bytes:
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


def arrays(train: int = 60, test: int = 20, seed: int = 0) -> dict[str, NDArray[np.uint8]]:
    """Contents of the four files by name: random pixels, ten labels in turn."""
    drawn = np.random.default_rng(seed)
    images = drawn.integers(0, 256, (train + test, 28, 28), dtype=np.uint8)
    labels = (np.arange(train + test) % 10).astype(np.uint8)
    return dict(zip(FILES, (images[:train], labels[:train], images[train:], labels[train:]), strict=True))


def write_set(folder: Path, content: dict[str, NDArray[np.uint8]], *, packed: bool = True) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in content.items():
        data = idx_bytes(array)
        if packed:
            (folder / f"{name}.gz").write_bytes(gzip.compress(data, mtime=0))
        else:
            (folder / name).write_bytes(data)
    return folder
