"""The order of rows: a function of (seed, epoch) alone, the same for every strategy and feed."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

Order = npt.NDArray[np.int64]


def order_of(seed: int, epoch: int, rows: int) -> Order:
    """Permutation of `rows` row numbers for that epoch (from 0), int64 [rows]."""
    return np.random.Generator(np.random.PCG64([seed, epoch])).permutation(rows)


def digest_of(order: Order) -> str:
    """Twelve hex digits that tell one order from another."""
    return hashlib.blake2b(np.ascontiguousarray(order, dtype="<i8").tobytes(), digest_size=6).hexdigest()
