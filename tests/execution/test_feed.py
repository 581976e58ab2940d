from __future__ import annotations

from functools import partial

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from escala.data.base import Split
from escala.execution.feed import Rows, evaluation_batches, rows_of, training_batches
from escala.execution.order import digest_of, order_of
from escala.strategies.seating import divide, share_of


def numbered(rows: int) -> Rows:
    """Rows whose input and target are their own number."""
    numbers = np.arange(rows, dtype=np.int64)
    return rows_of(Split(numbers, numbers), torch.device("cpu"), lambda raw: raw, len)


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
        seen = [row for inputs, _, count in line if count for row in inputs.tolist()]
        assert seen == wanted
        # The one global denominator is known to every seat that adds something to the step.
        assert {count for _, _, count in line} - {0} == {len(wanted)}
        assert all(len(inputs) == 1 for inputs, _, count in line if not count)


@settings(deadline=None)
@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 7))
def test_every_row_is_evaluated_once_in_the_same_chunks(rows: int, chunk: int, seats: int) -> None:
    def chunks(of: int) -> list[list[int]]:
        return [
            inputs.tolist() for seat in range(of) for inputs, _ in evaluation_batches(numbered(rows), chunk, seat, of)
        ]

    assert chunks(seats) == chunks(1)
    assert [row for part in chunks(seats) for row in part] == list(range(rows))


def test_fewer_evaluation_rows_than_seats_are_still_judged_exactly() -> None:
    parts = [list(evaluation_batches(numbered(1), 500, seat, 2)) for seat in range(2)]
    assert [len(part) for part in parts] == [0, 1]


def test_order_is_a_function_of_seed_and_epoch_alone() -> None:
    first = order_of(1, 0, 1000)
    assert (first == order_of(1, 0, 1000)).all()
    assert digest_of(first) != digest_of(order_of(1, 1, 1000))
    assert digest_of(first) != digest_of(order_of(2, 0, 1000))
    assert sorted(first.tolist()) == list(range(1000))
