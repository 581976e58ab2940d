from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numbered import Numbers, numbered

from escala.data.base import Split
from escala.execution import feed
from escala.execution.feed import Rows, evaluation_batches, rows_of, sample_of, training_batches
from escala.execution.order import Order, by_length, chunks_of, digest_of, order_of
from escala.strategies.seating import divide, share_of


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 70), st.integers(1, 5), st.integers(0, 9))
def test_every_row_is_trained_on_once_an_epoch_however_many_seats(
    rows: int, batch: int, ways: int, epoch: int
) -> None:
    order = order_of(3, epoch, rows)
    seats = [
        list(training_batches(numbered(rows), order, batch, partial(share_of, part, batch)))
        for part in divide(batch, ways)
    ]
    for step, line in enumerate(zip(*seats, strict=True)):
        wanted = order[step * batch : (step + 1) * batch].tolist()
        seen = [row for inputs, _, count, _ in line if count for row in inputs.tolist()]
        assert seen == wanted
        # The one global denominator is known to every seat that adds something to the step.
        assert {count for _, _, count, _ in line} - {0} == {len(wanted)}
        assert {size for *_, size in line} == {len(wanted)}
        assert all(len(inputs) == 1 for inputs, _, count, _ in line if not count)


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 7))
def test_every_row_is_evaluated_once_in_the_same_chunks(rows: int, chunk: int, seats: int) -> None:
    def chunks(of: int) -> list[list[int]]:
        return [
            inputs.tolist()
            for seat in range(of)
            for inputs, _, _ in evaluation_batches(numbered(rows, chunk), seat, of)
        ]

    assert chunks(seats) == chunks(1)
    assert [row for part in chunks(seats) for row in part] == list(range(rows))


def test_fewer_evaluation_rows_than_seats_are_still_judged_exactly() -> None:
    parts = [list(evaluation_batches(numbered(1), seat, 2)) for seat in range(2)]
    assert [len(part) for part in parts] == [0, 1]


def test_order_is_a_function_of_seed_and_epoch_alone() -> None:
    first = order_of(1, 0, 1000)
    assert (first == order_of(1, 0, 1000)).all()
    assert digest_of(first) != digest_of(order_of(1, 1, 1000))
    assert digest_of(first) != digest_of(order_of(2, 0, 1000))
    assert sorted(first.tolist()) == list(range(1000))


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), st.integers(0, 5))
def test_batches_of_like_lengths_hold_every_row_once(rows: int, batch: int, epoch: int) -> None:
    lengths = np.random.default_rng(rows).integers(1, 100, rows)
    order = order_of(3, epoch, rows)
    changed = by_length(order, lengths, batch, 3, epoch)
    assert sorted(changed.tolist()) == list(range(rows))
    assert (changed == by_length(order, lengths, batch, 3, epoch)).all()


def test_batches_of_like_lengths_need_less_padding_and_still_differ_by_epoch() -> None:
    lengths = np.random.default_rng(0).integers(1, 257, 4000)

    def padded(order: Order) -> float:
        widths = [lengths[order[start : start + 32]].max() for start in range(0, 4000, 32)]
        return 1 - lengths.sum() / (32 * sum(widths))

    first, second = (by_length(order_of(1, epoch, 4000), lengths, 32, 1, epoch) for epoch in (0, 1))
    assert padded(order_of(1, 0, 4000)) > 0.4
    assert padded(first) < 0.1
    assert (first != second).any()


def test_rows_are_cut_after_the_longest_of_the_global_batch_on_every_seat() -> None:
    lengths = torch.arange(1, 41)
    rows = Rows(
        (torch.arange(40)[None] < lengths[:, None]).int(),
        torch.zeros(40, dtype=torch.int64),
        torch.device("cpu"),
        lambda raw, targets: (raw, targets),
        len,
        lambda _, targets: targets.sum(),
        chunk=16,
        lengths=lengths,
    )
    order = rows.order(0, 0, 10)
    for part in divide(10, 2):
        batches = training_batches(rows, order, 10, partial(share_of, part, 10))
        for number, (inputs, *_) in enumerate(batches):
            longest = int(lengths[order[number * 10 : number * 10 + 10]].max())
            assert inputs.shape[1] == -(-longest // 8) * 8
    assert [inputs.shape[1] for inputs, _, _ in evaluation_batches(rows, 0, 1)] == [16, 32, 40]


def test_a_large_set_stays_in_its_file_and_a_small_one_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.arange(1000, dtype=np.int64)
    own = rows_of(Split(numbers, numbers), torch.device("cpu"), Numbers(), torch.float32)
    assert own.raw.data_ptr() != numbers.ctypes.data
    monkeypatch.setattr(feed, "_OWN_BYTES", 100)
    mapped = rows_of(Split(numbers, numbers), torch.device("cpu"), Numbers(), torch.float32)
    assert mapped.raw.data_ptr() == numbers.ctypes.data
    assert mapped.raw.tolist() == numbers.tolist()


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 7))
def test_seats_that_judge_together_pass_equally_often_and_judge_the_same(rows: int, chunk: int, seats: int) -> None:
    of = numbered(rows, chunk)
    alone = [list(evaluation_batches(of, seat, seats)) for seat in range(seats)]
    together = [list(evaluation_batches(of, seat, seats, together=True)) for seat in range(seats)]
    assert len({len(passes) for passes in together}) == 1
    for own, passes in zip(alone, together, strict=True):
        assert [inputs.tolist() for inputs, *_ in passes[: len(own)]] == [inputs.tolist() for inputs, *_ in own]
        assert all((len(inputs), len(targets), count) == (1, 0, 0) for inputs, targets, count in passes[len(own) :])


def test_a_sample_is_the_first_rows_as_the_network_takes_them() -> None:
    for asked, there in ((3, 3), (30, 5)):
        inputs, targets = sample_of(numbered(5), asked)
        assert inputs.tolist() == list(range(there))
        assert len(targets) == there


@given(st.integers(0, 300), st.integers(1, 40), st.integers(1, 9))
def test_every_chunk_is_one_shares_and_none_has_more_than_the_last(rows: int, chunk: int, shares: int) -> None:
    dealt = [chunks_of(rows, chunk, share, shares) for share in range(shares)]
    assert [number for own in dealt for number in own] == list(range(-(-rows // chunk)))
    assert max(map(len, dealt)) == len(dealt[-1])
