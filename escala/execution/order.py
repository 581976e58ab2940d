"""The order of rows: a function of (seed, epoch) alone, the same for every strategy and feed."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

Order = npt.NDArray[np.int64]

_SPAN = 50


def order_of(seed: int, epoch: int, rows: int) -> Order:
    """Permutation of `rows` row numbers for that epoch (from 0), int64 [rows]."""
    return np.random.Generator(np.random.PCG64([seed, epoch])).permutation(rows)


def chunks_of(rows: int, chunk: int, share: int, shares: int) -> range:
    """Which chunks of `chunk` rows a share judges: a contiguous run, empty for some shares where chunks are few.

    No share has more of them than the last.
    """
    chunks = -(-rows // chunk)
    return range(chunks * share // shares, chunks * (share + 1) // shares)


def by_length(order: Order, lengths: Order, batch: int, seed: int, epoch: int) -> Order:
    """The order changed so that each batch holds rows of like lengths: less of it is padding.

    Rows are sorted by length within spans of `_SPAN` batches, and the batches of a span come in random order. Only
    the last batch of the epoch is short, as before.
    """
    drawn = np.random.Generator(np.random.PCG64([seed, epoch, 1]))
    changed = order.copy()
    for first in range(0, len(order), _SPAN * batch):
        span = order[first : first + _SPAN * batch]
        span = span[np.argsort(lengths[span], kind="stable")]
        whole = len(span) // batch
        batches = span[: whole * batch].reshape(whole, batch)[drawn.permutation(whole)]
        changed[first : first + len(span)] = np.concatenate([batches.reshape(-1), span[whole * batch :]])
    return changed


def digest_of(order: Order) -> str:
    """Twelve hex digits that tell one order from another."""
    return hashlib.blake2b(np.ascontiguousarray(order, dtype="<i8").tobytes(), digest_size=6).hexdigest()
