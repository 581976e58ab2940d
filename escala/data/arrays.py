"""One array file (.npy), written some rows at a time and checksummed on the way."""

from __future__ import annotations

import hashlib
import io
import math
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from escala.data.manifest import FileCheck

_HEADER_BYTES = 128


def array_bytes(shape: tuple[int, ...], dtype: str) -> int:
    """Bytes that the file of such an array takes."""
    return _HEADER_BYTES + math.prod(shape) * np.dtype(dtype).itemsize


@final
class ArrayFile:
    """A new file for an array of this shape and type; its rows are appended in order. Raises OSError."""

    def __init__(self, path: Path, shape: tuple[int, ...], dtype: str) -> None:
        self._dtype = np.dtype(dtype)
        self._seen = hashlib.sha256()
        self._bytes = 0
        self._file = path.open("xb")
        header = io.BytesIO()
        descr = npy.dtype_to_descr(self._dtype)
        npy.write_array_header_1_0(header, {"descr": descr, "fortran_order": False, "shape": shape})
        self._write(header.getvalue())

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows [n, ...] of the array."""
        self._write(rows.astype(self._dtype, copy=False).tobytes())

    def close(self) -> None:
        """Hand the last bytes to the system."""
        self._file.close()

    def check(self) -> FileCheck:
        """Size and checksum of what was appended."""
        return FileCheck(self._bytes, self._seen.hexdigest())

    def _write(self, data: bytes) -> None:
        self._file.write(data)
        self._seen.update(data)
        self._bytes += len(data)
