"""Rows for one seat: sliced from memory, moved to the seat's device, made floats there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from escala.data.base import Split
from escala.execution.memory_format import lay_out_inputs
from escala.execution.order import Order, by_length, chunks_of, order_of
from escala.terms.experiment import ExecutionSpec
from escala.workloads.base import Workload

_PLAIN = ExecutionSpec()

_OWN_BYTES = 2**28
_WIDTHS = 8

Batch = tuple[Tensor, Tensor, int, int]
"""Inputs and targets of this seat's rows, on its device, then count and number of rows of the GLOBAL batch."""

Chunk = tuple[Tensor, Tensor, int]
"""Inputs and targets of rows to be judged, on the seat's device, and their count."""


@dataclass(frozen=True)
class Rows:
    """One split as tensors, with what is needed to make batches of it.

    `raw` [rows, ...] in its stored, narrow type and `targets` [rows, ...] lie in host memory; `convert` makes of
    both, on the device, what the network takes and what the loss compares with; `count` counts what counts in the
    stored targets of a global batch. `score` judges outputs, `chunk` rows at a time. Where rows have `lengths`, int64
    [rows], batches are made of rows of like lengths and cut after the longest row of the global batch. `resident`
    holds `raw` and `targets` once more, on the device. `by_rows`: what counts are the rows themselves.
    """

    raw: Tensor
    targets: Tensor
    device: torch.device
    convert: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
    count: Callable[[Tensor], int]
    score: Callable[[Tensor, Tensor], Tensor]
    chunk: int
    lengths: Tensor | None = None
    resident: tuple[Tensor, Tensor] | None = None
    by_rows: bool = False

    def order(self, seed: int, epoch: int, batch: int) -> Order:
        """The order in which an epoch's rows are seen, the same on every seat."""
        order = order_of(seed, epoch, len(self))
        return order if self.lengths is None else by_length(order, self.lengths.numpy(), batch, seed, epoch)

    def __len__(self) -> int:
        return len(self.targets)


def rows_of(
    split: Split, device: torch.device, work: Workload, dtype: torch.dtype, execution: ExecutionSpec = _PLAIN
) -> Rows:
    """A split, read before anything is timed: into this process's own memory, or, if large, into the shared cache.

    With `feed = "resident"` it also lies on the device from then on; on a CPU it does so in any case.
    """
    raw, targets = _read(split.inputs), _read(split.targets)
    stays = execution.feed == "resident" and device.type != "cpu"
    return Rows(
        raw,
        targets,
        device,
        lay_out_inputs(partial(work.example, dtype=dtype), execution.memory_format),
        work.count,
        work.judge(split.side.read_bytes() if split.side else b""),
        work.evaluation_rows,
        work.lengths(raw),
        (raw.to(device), targets.to(device)) if stays else None,
        type(work).count is Workload.count,
    )


def sample_of(rows: Rows, many: int) -> tuple[Tensor, Tensor]:
    """Inputs as the network takes them, and targets, of the first `many` rows, or of all if fewer, on the device."""
    return rows.convert(rows.raw[:many].to(rows.device), rows.targets[:many].to(rows.device))


def _read(array: NDArray[Any]) -> Tensor:
    """The array as a tensor, in memory before anything is timed: reading in mid-step would count as training."""
    if array.nbytes <= _OWN_BYTES:
        # The system gives larger pages to a process's own memory, which shows in steps of 2 ms.
        return torch.from_numpy(np.array(array))
    tensor = torch.from_numpy(array)
    for block in tensor.split(max(1, _OWN_BYTES // max(1, array[:1].nbytes))):
        block.amax()
    return tensor


def training_batches(
    rows: Rows, order: Order, batch: int, share: Callable[[int], slice], *, first: int = 0
) -> Iterator[Batch]:
    """Global batches of `batch` rows in `order`, of each only the rows that `share(size)` gives this seat.

    Begins with batch `first`; the rows before it are not read.
    The last batch may be smaller. A seat whose share is empty gets one row of the batch with a count of 0, which
    tells the learner to add nothing: it must still take its place in the exchange of gradients.
    """
    line = torch.from_numpy(order)
    device, convert = rows.device, rows.convert
    raw, targets = rows.resident or (rows.raw, rows.targets)
    places = line if rows.resident is None else line.to(device)
    move = device.type != "cpu" and rows.resident is None
    for start, size, own, empty in portions(len(order), batch, share, first):
        mine = places[own]
        inputs, wanted = raw[mine], targets[mine]
        if rows.lengths is not None:
            inputs = cut(inputs, rows.lengths[line[start : start + size]])
        count = 0 if empty else size if rows.by_rows else rows.count(rows.targets[line[start : start + size]])
        if move:
            inputs, wanted = inputs.to(device, non_blocking=True), wanted.to(device, non_blocking=True)
        yield *convert(inputs, wanted), count, size


def place_batches(
    rows: Rows, order: Order, batch: int, share: Callable[[int], slice], *, first: int = 0
) -> Iterator[Batch]:
    """As `training_batches`, but of rows on the device only where they lie: their numbers, int64 [rows], twice."""
    line = torch.from_numpy(order)
    places = line.to(rows.device)
    for start, size, own, empty in portions(len(order), batch, share, first):
        mine = places[own]
        count = 0 if empty else size if rows.by_rows else rows.count(rows.targets[line[start : start + size]])
        yield mine, mine, count, size


def portions(
    rows: int, batch: int, share: Callable[[int], slice], first: int
) -> Iterator[tuple[int, int, slice, bool]]:
    """Of each global batch: where it starts, its rows, this seat's part of the whole order, and if that is for show.

    A seat without rows of its own gets the first one of the batch.
    """
    whole = share(batch)
    for start in range(first * batch, rows, batch):
        size = min(batch, rows - start)
        own = whole if size == batch else share(size)
        empty = own.start == own.stop
        yield start, size, slice(start, start + 1) if empty else slice(start + own.start, start + own.stop), empty


def evaluation_batches(rows: Rows, share: int, shares: int, *, together: bool = False) -> Iterator[Chunk]:
    """Every row once over all shares: chunks of `rows.chunk` rows, dealt to the shares in contiguous runs.

    The count is that of the chunk. Chunks do not depend on the number of shares, so each row meets the same
    neighbours on any number of seats. `together`: all shares get equally many chunks, the last of some being one row
    without a target, which is not to be judged.
    """
    chunk = rows.chunk
    raw, wanted = rows.resident or (rows.raw, rows.targets)
    own = chunks_of(len(rows), chunk, share, shares)
    for number in own:
        part = slice(number * chunk, (number + 1) * chunk)
        inputs, targets = raw[part], wanted[part]
        if rows.lengths is not None:
            inputs = cut(inputs, rows.lengths[part])
        yield *rows.convert(inputs.to(rows.device), targets.to(rows.device)), rows.count(rows.targets[part])
    if together and len(own) < len(chunks_of(len(rows), chunk, shares - 1, shares)):
        inputs = raw[:1] if rows.lengths is None else cut(raw[:1], rows.lengths[:1])
        example, targets = rows.convert(inputs.to(rows.device), wanted[:1].to(rows.device))
        yield example, targets[:0], 0


def cut(inputs: Tensor, lengths: Tensor) -> Tensor:
    """Rows [n, ..., tokens] without the columns after the longest, as far as `width` goes."""
    return inputs[..., : width(lengths)]


def width(lengths: Tensor) -> int:
    """Columns that rows of these lengths keep: widths in eights, so that few shapes occur."""
    return -(-max(1, int(lengths.max())) // _WIDTHS) * _WIDTHS
