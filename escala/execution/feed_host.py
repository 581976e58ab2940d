"""`feed = "host"`: threads cut batches out of host memory ahead of the step that needs them.

Threads and no processes: copying rows gives up Python's lock, so they need no second copy through shared memory, no
start method and no room in /dev/shm; and what goes wrong in one of them ends the trial with that very exception.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from torch import Tensor

from escala.execution.feed import Batch, Rows, cut, portions
from escala.execution.order import Order
from escala.terms.errors import EscalaError

AHEAD = 2
"""Batches that lie ready, or are being made, for each worker."""
TIMEOUT_S = 120.0
"""A batch that takes longer than this will never come."""
_TRIAL_S = 0.15
_GOOD = 0.9

_Cut = tuple[Tensor, Tensor, int, int]


def host_batches(
    rows: Rows,
    order: Order,
    batch: int,
    share: Callable[[int], slice],
    *,
    first: int = 0,
    workers: int,
    timeout_s: float = TIMEOUT_S,
) -> Iterator[Batch]:
    """What `training_batches` gives, in the same order, made by `workers` threads.

    On CUDA they come from pinned memory over a stream of their own, one batch ahead. Raises whatever a worker raised;
    DATA-FEED where a batch did not come within `timeout_s` seconds.
    """
    made = _cut_ahead(rows, order, batch, share, first, workers, timeout_s)
    if rows.device.type == "cuda":
        yield from _over_a_side_stream(rows, made)
        return
    for inputs, wanted, count, size in made:
        yield *rows.convert(inputs.to(rows.device), wanted.to(rows.device)), count, size


def best_workers(
    rows: Rows, order: Order, batch: int, share: Callable[[int], slice], most: int, seconds: float = _TRIAL_S
) -> int:
    """The fewest threads, of 1, 2, 4, ... up to `most`, that feed 0.9 times as fast as the best of them.

    Each is measured for about `seconds` on this seat's own rows.
    """
    rates = dict[int, float]()
    workers = 1
    while workers <= max(1, most):
        rates[workers] = _rate(rows, order, batch, share, workers, seconds)
        workers *= 2
    return next(workers for workers, rate in rates.items() if rate >= _GOOD * max(rates.values()))


def _rate(rows: Rows, order: Order, batch: int, share: Callable[[int], slice], workers: int, seconds: float) -> float:
    began, made = time.monotonic(), 0
    while True:
        for _ in _cut_ahead(rows, order, batch, share, 0, workers, TIMEOUT_S):
            made += 1
            if (passed := time.monotonic() - began) >= seconds:
                return made / passed


def _cut_ahead(
    rows: Rows,
    order: Order,
    batch: int,
    share: Callable[[int], slice],
    first: int,
    workers: int,
    timeout_s: float,
) -> Iterator[_Cut]:
    portion = portions(len(order), batch, share, first)
    waiting = deque[Future[_Cut]]()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="feed")

    def ask() -> None:
        following = next(portion, None)
        if following is not None:
            waiting.append(pool.submit(_made, rows, order, *following))

    try:
        for _ in range(AHEAD * workers):
            ask()
        while waiting:
            try:
                done = waiting.popleft().result(timeout_s)
            except TimeoutError as error:
                raise EscalaError(
                    "DATA-FEED",
                    "execution.feed",
                    f"no batch came from the {workers} threads of the feed within {timeout_s:g} s",
                    next_step="look at the disk that holds the prepared data, or use feed = memory",
                ) from error
            ask()
            yield done
    finally:
        # Who stops early does not wait for batches that nobody wants.
        pool.shutdown(wait=False, cancel_futures=True)


def _made(rows: Rows, order: Order, start: int, size: int, own: slice, empty: bool) -> _Cut:
    pinned = rows.device.type == "cuda"
    mine = order[own]
    batch = order[start : start + size]
    wanted = _taken(rows.targets, mine, pinned)
    if rows.lengths is None:
        inputs = _taken(rows.raw, mine, pinned)
    else:
        inputs = cut(rows.raw[torch.from_numpy(mine)], rows.lengths[torch.from_numpy(batch)]).contiguous()
        inputs = inputs.pin_memory() if pinned else inputs
    count = 0 if empty else size if rows.by_rows else rows.count(_taken(rows.targets, batch, pinned=False))
    return inputs, wanted, count, size


def _taken(source: Tensor, mine: Order, pinned: bool) -> Tensor:
    """Rows `mine` of `source`, copied by this thread alone: torch would wake a team of threads for it."""
    taken = torch.empty((len(mine), *source.shape[1:]), dtype=source.dtype, pin_memory=pinned)
    # Of numpy's ways to treat numbers out of range only `clip` writes into `out` without a copy; none are out of it.
    np.take(source.numpy(), mine, axis=0, out=taken.numpy(), mode="clip")
    return taken


def _over_a_side_stream(rows: Rows, made: Iterator[_Cut]) -> Iterator[Batch]:
    device = rows.device
    side = torch.cuda.Stream(device)
    ahead = deque[tuple[Tensor, Tensor, torch.cuda.Event, int, int]]()

    def arrived() -> Batch:
        inputs, wanted, event, count, size = ahead.popleft()
        current = torch.cuda.current_stream(device)
        current.wait_event(event)
        for moved in (inputs, wanted):
            # Its memory may not serve the side stream again before the step has read it.
            moved.record_stream(current)
        return *rows.convert(inputs, wanted), count, size

    for inputs, wanted, count, size in made:
        with torch.cuda.stream(side):
            moved = inputs.to(device, non_blocking=True), wanted.to(device, non_blocking=True)
            ahead.append((*moved, side.record_event(), count, size))
        if len(ahead) > 1:
            yield arrived()
    while ahead:
        yield arrived()
