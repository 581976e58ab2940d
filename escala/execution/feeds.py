"""By what way training batches reach a seat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Protocol

from torch import Tensor

from escala.execution.feed import Batch, Rows, place_batches, training_batches
from escala.execution.feed_host import best_workers, host_batches
from escala.execution.order import Order
from escala.terms.experiment import ExecutionSpec


class Feeder(Protocol):
    """Makes the training batches of one epoch from batch `first` on; rows and order do not depend on the way."""

    def __call__(
        self, rows: Rows, order: Order, batch: int, share: Callable[[int], slice], *, first: int = 0
    ) -> Iterator[Batch]: ...


def feeder(
    execution: ExecutionSpec,
    rows: Rows,
    batch: int,
    share: Callable[[int], slice],
    seed: int,
    threads: int,
) -> tuple[Feeder, dict[str, str]]:
    """The feeder that `execution.feed` asks for, and what to record of it.

    `rows` that lie on the device already are cut there. For `host` with no number of workers, up to `threads` of them
    are measured on the first epoch's rows, for less than a second.
    """
    if execution.feed != "host":
        return training_batches, {}
    workers, how = execution.workers, ""
    if not workers:
        workers = best_workers(rows, rows.order(seed, 0, batch), batch, share, threads)
        how = ", chosen by measurement"
    return partial(host_batches, workers=workers), {"feed workers": f"{workers}{how}"}


def unfinished(
    feed: Feeder, execution: ExecutionSpec, rows: Rows
) -> tuple[Feeder, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]]:
    """The same batches with as little as possible done to them, and what does the rest on the device.

    The latter then belongs to a recorded step. Resident rows are only named, unless they are cut to their lengths.
    """
    if execution.feed == "resident" and rows.lengths is None:
        raw, targets = rows.resident or (rows.raw, rows.targets)

        def gathered(places: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
            return rows.convert(raw[places], targets[places])

        return place_batches, gathered

    def as_stored(
        rows: Rows, order: Order, batch: int, share: Callable[[int], slice], *, first: int = 0
    ) -> Iterator[Batch]:
        return feed(replace(rows, convert=_nothing), order, batch, share, first=first)

    return as_stored, rows.convert


def _nothing(raw: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    return raw, targets
