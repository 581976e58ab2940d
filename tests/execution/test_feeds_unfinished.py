"""Batches for recorded steps: the same rows, of which less was made."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numbered import Numbers

from escala.data.base import Split
from escala.execution.feed import Rows, rows_of
from escala.execution.feeds import feeder, unfinished
from escala.execution.order import order_of
from escala.strategies.seating import share_of
from escala.terms.experiment import ExecutionSpec, Feed


class Halves(Numbers):
    """Makes something of its rows, so that it shows who did."""

    def inputs(self, raw: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return raw.to(dtype) / 2


def rows(many: int, execution: ExecutionSpec) -> Rows:
    numbers = torch.arange(many).numpy()
    return rows_of(Split(numbers, numbers), torch.device("cpu"), Halves(), torch.float32, execution)


@pytest.mark.parametrize("feed", ["memory", "resident", "host"])
# Threads of the feed start when the machine has time for them.
@settings(deadline=None)
@given(st.integers(1, 30), st.integers(1, 8), st.integers(1, 3), st.data())
def test_what_is_completed_is_what_the_feed_gives(
    feed: Feed, many: int, batch: int, seats: int, data: st.DataObject
) -> None:
    execution = ExecutionSpec(feed=feed, workers=1 if feed == "host" else 0)
    seat = data.draw(st.integers(0, seats - 1))
    whole, source = max(batch, seats), rows(many, execution)
    own = (whole * seat // seats, whole * (seat + 1) // seats)
    made, _ = feeder(execution, source, whole, share := lambda size: share_of(own, whole, size), 0, 1)
    first = data.draw(st.integers(0, 2))
    order = order_of(0, 0, many)
    expected = list(made(source, order, whole, share, first=first))
    late, complete = unfinished(made, execution, source)
    found = list(late(source, order, whole, share, first=first))
    assert len(found) == len(expected)
    for (inputs, targets, *numbers), (raw, stored, *others) in zip(expected, found, strict=True):
        assert numbers == others
        assert raw.dtype is torch.int64, "floats were made outside the step"
        assert all(torch.equal(one, two) for one, two in zip((inputs, targets), complete(raw, stored), strict=True))
