"""Batches a second that reach the training loop: threads that cut ahead, against DataLoader's worker processes.

`python benchmarks/feed_ahead.py [--seconds S]`: for rows of several sizes, the plain feed, `feed = "host"` with 1 and
2 threads, and a DataLoader whose workers take whole batches (the fastest way to use it: a batch is cut by one index,
not put together row by row) without the usual collation. Nobody trains meanwhile. Exits 1 where the best number of
threads gives less than the best number of processes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

from escala.data.base import Split
from escala.execution.feed import Rows, rows_of, training_batches
from escala.execution.feed_host import host_batches
from escala.execution.order import order_of
from escala.strategies.seating import share_of
from escala.workloads import workload

WORKERS = (1, 2)
SHAPES = {"28x28 uint8": ((28, 28), np.uint8, 64), "3x32x32 uint8": ((3, 32, 32), np.uint8, 128)} | {
    "148x197 float16": ((148, 197), np.float16, 128)
}


class Batches(Dataset[Any]):
    """Whole batches by their row numbers."""

    def __init__(self, rows: Rows) -> None:
        self._raw, self._targets = rows.raw, rows.targets

    def __getitem__(self, numbers: Any) -> Any:
        mine = torch.from_numpy(numbers)
        return self._raw[mine], self._targets[mine]


def loaded(rows: Rows, batch: int, workers: int) -> Iterator[Any]:
    """An epoch from worker processes that were not forked, converted like any other."""
    order = order_of(0, 0, len(rows))
    numbers: Any = [order[start : start + batch] for start in range(0, len(order), batch)]
    loader = DataLoader(
        Batches(rows), batch_size=None, sampler=numbers, num_workers=workers, multiprocessing_context="forkserver"
    )
    for raw, targets in loader:
        yield rows.convert(raw, targets)


def pace(epoch: Callable[[], Iterator[Any]], seconds: float) -> float:
    """Batches a second, from the second batch of an epoch on: starting processes is not counted against them."""
    spent, done = 0.0, 0
    while spent < seconds:
        batches = epoch()
        next(batches)
        began = time.perf_counter()
        done += sum(1 for _ in batches)
        spent += time.perf_counter() - began
    return done / spent


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--seconds", type=float, default=1.0)
    given = words.parse_args()
    torch.set_num_threads(1)
    work, least = workload("mlp", {}), float("inf")
    drawn = np.random.default_rng(0)
    for name, (shape, kind, batch) in SHAPES.items():
        raw = drawn.integers(0, 2, (200 * batch if len(shape) == 3 or shape[0] < 100 else 30 * batch, *shape))
        split = Split(raw.astype(kind), np.zeros(len(raw), np.int64))
        rows = rows_of(split, torch.device("cpu"), work, torch.float32)
        order, share = order_of(0, 0, len(rows)), partial(share_of, (0, batch), batch)
        plain = pace(lambda: training_batches(rows, order, batch, share), given.seconds)  # noqa: B023
        threads = {
            many: pace(lambda: host_batches(rows, order, batch, share, workers=many), given.seconds)  # noqa: B023
            for many in WORKERS
        }
        processes = {many: pace(lambda: loaded(rows, batch, many), given.seconds) for many in WORKERS}  # noqa: B023
        ratio = max(threads.values()) / max(processes.values())
        least = min(least, ratio)
        figures = " ".join(f"{value:9,.0f}" for value in (plain, *threads.values(), *processes.values()))
        print(
            f"{name:16} batch {batch:3}: plain, threads 1 2, processes 1 2: {figures}; ratio {ratio:.2f}", flush=True
        )
    print(f"least ratio of threads to processes {least:.2f} (at least 1)")
    return int(least < 1)


if __name__ == "__main__":
    raise SystemExit(main())
