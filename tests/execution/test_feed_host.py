"""Threads that cut batches ahead give what the plain feed gives, and nothing that goes wrong in them is lost."""

from __future__ import annotations

import threading
from dataclasses import replace
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numbered import numbered
from torch import Tensor

from escala.execution.feed import Batch, Rows, training_batches
from escala.execution.feed_host import best_workers, host_batches
from escala.execution.feeds import feeder
from escala.execution.order import order_of
from escala.strategies.seating import divide, share_of
from escala.terms.errors import EscalaError
from escala.terms.experiment import ExecutionSpec


def told(batches: list[Batch]) -> list[tuple[list[int], list[int], int, int]]:
    return [(inputs.tolist(), targets.tolist(), count, size) for inputs, targets, count, size in batches]


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 200), st.integers(1, 70), st.integers(1, 4), st.integers(1, 3), st.integers(0, 3), st.booleans()
)
def test_rows_and_order_are_those_of_the_plain_feed(
    rows: int, batch: int, ways: int, workers: int, first: int, of_lengths: bool
) -> None:
    order = order_of(3, 1, rows)
    source = numbered(rows)
    if of_lengths:
        wide = torch.arange(rows)[:, None].repeat(1, 40)
        source = replace(source, raw=wide, lengths=1 + torch.arange(rows) % 40)
    for part in divide(batch, ways):
        share = partial(share_of, part, batch)
        plain = told(list(training_batches(source, order, batch, share, first=first)))
        assert told(list(host_batches(source, order, batch, share, first=first, workers=workers))) == plain


def test_tokens_that_count_are_counted_over_the_whole_batch() -> None:
    def count(targets: Tensor) -> int:
        return int(targets.sum())

    source = replace(numbered(50), count=count, by_rows=False)
    share = partial(share_of, (0, 5), 10)
    order = order_of(0, 0, 50)
    plain = told(list(training_batches(source, order, 10, share)))
    assert sum(counted for _, _, counted, _ in plain) == 49 * 25
    assert told(list(host_batches(source, order, 10, share, workers=2))) == plain


def test_what_a_worker_raises_ends_the_feed() -> None:
    def count(targets: Tensor) -> int:
        raise ValueError("a damaged row")

    source = replace(numbered(50), count=count, by_rows=False)
    with pytest.raises(ValueError, match="a damaged row"):
        list(whole(source))


def whole(source: Rows, **options: float) -> list[Batch]:
    order = order_of(0, 0, len(source))
    return list(host_batches(source, order, 10, partial(share_of, (0, 10), 10), workers=1, **options))  # type: ignore[arg-type]


def test_a_batch_that_does_not_come_is_not_waited_for_for_ever() -> None:
    gate = threading.Event()

    def count(targets: Tensor) -> int:
        gate.wait()
        return len(targets)

    try:
        with pytest.raises(EscalaError, match=r"DATA-FEED.* no batch came from the 1 threads.* within 0.01 s"):
            whole(replace(numbered(50), count=count, by_rows=False), timeout_s=0.01)
    finally:
        gate.set()


def test_who_stops_early_leaves_no_thread_behind() -> None:
    order = order_of(0, 0, 5000)
    batches = host_batches(numbered(5000), order, 10, partial(share_of, (0, 10), 10), workers=3)
    next(batches)
    mine = [thread for thread in threading.enumerate() if thread.name.startswith("feed")]
    assert mine
    batches.close()  # type: ignore[attr-defined]
    for thread in mine:
        thread.join(10)
        assert not thread.is_alive()


def test_the_number_of_workers_is_measured_and_told() -> None:
    source = numbered(200)
    share = partial(share_of, (0, 10), 10)
    assert best_workers(source, order_of(0, 0, 200), 10, share, 1, seconds=0.001) == 1
    assert best_workers(source, order_of(0, 0, 200), 10, share, 5, seconds=0.001) in (1, 2, 4)
    _, notes = feeder(ExecutionSpec(feed="host", workers=3), source, 10, share, 0, 1)
    assert notes == {"feed workers": "3"}
    feed, notes = feeder(ExecutionSpec(feed="host"), source, 10, share, 0, 1)
    assert notes == {"feed workers": "1, chosen by measurement"}
    assert len(list(feed(source, order_of(0, 0, 200), 10, share))) == 20
    for other in ("memory", "resident"):
        assert feeder(ExecutionSpec(feed=other), source, 10, share, 0, 4) == (training_batches, {})


def test_a_device_that_holds_the_rows_cuts_them_itself() -> None:
    source = numbered(53)
    order, share = order_of(0, 0, 53), partial(share_of, (3, 10), 10)
    held = replace(source, raw=source.raw + 1000, resident=(source.raw, source.targets))
    assert told(list(training_batches(held, order, 10, share))) == told(
        list(training_batches(source, order, 10, share))
    )
