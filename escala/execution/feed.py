"""Rows for one seat: sliced from memory, moved to the seat's device, made floats there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from escala.data.base import Split
from escala.execution.order import Order

Batch = tuple[Tensor, Tensor, int]
"""Inputs and targets of this seat's rows, on its device, and the count of the GLOBAL batch."""


@dataclass(frozen=True)
class Rows:
    """One split as tensors, with what is needed to make batches of it.

    `raw` [rows, ...] in its stored, narrow type and `targets` [rows] lie in host memory; `convert` makes network
    inputs of raw rows on the device; `count` counts what counts in the targets of a global batch.
    """

    raw: Tensor
    targets: Tensor
    device: torch.device
    convert: Callable[[Tensor], Tensor]
    count: Callable[[Tensor], int]

    def __len__(self) -> int:
        return len(self.targets)


def rows_of(
    split: Split, device: torch.device, convert: Callable[[Tensor], Tensor], count: Callable[[Tensor], int]
) -> Rows:
    """A split in this process's own memory: reading a mapped file in mid-step would be timed as training."""
    return Rows(
        torch.from_numpy(np.array(split.inputs)),
        torch.from_numpy(np.array(split.targets)),
        device,
        convert,
        count,
    )


def training_batches(rows: Rows, order: Order, batch: int, share: Callable[[int], slice]) -> Iterator[Batch]:
    """Global batches of `batch` rows in `order`, of each only the rows that `share(size)` gives this seat.

    The last batch may be smaller. A seat whose share is empty gets one row of the batch with a count of 0, which
    tells the learner to add nothing: it must still take its place in the exchange of gradients.
    """
    line = torch.from_numpy(order)
    raw, targets, device, convert = rows.raw, rows.targets, rows.device, rows.convert
    whole = share(batch)
    move = device.type != "cpu"
    for start in range(0, len(order), batch):
        size = min(batch, len(order) - start)
        own = whole if size == batch else share(size)
        mine = line[start + own.start : start + own.stop]
        empty = own.start == own.stop
        if empty:
            mine = line[start : start + 1]
        inputs, wanted = raw[mine], targets[mine]
        if empty:
            count = 0
        elif own.stop - own.start == size:
            count = rows.count(wanted)
        else:
            count = rows.count(targets[line[start : start + size]])
        if move:
            inputs, wanted = inputs.to(device, non_blocking=True), wanted.to(device, non_blocking=True)
        yield convert(inputs), wanted, count


def evaluation_batches(rows: Rows, chunk: int, seat: int, seats: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Every row once over all seats: chunks of `chunk` rows, dealt to the seats in contiguous runs.

    Chunks do not depend on the number of seats, so each row meets the same neighbours on any number of seats.
    """
    chunks = -(-len(rows) // chunk)
    for number in range(chunks * seat // seats, chunks * (seat + 1) // seats):
        part = slice(number * chunk, (number + 1) * chunk)
        yield rows.convert(rows.raw[part].to(rows.device)), rows.targets[part].to(rows.device)
