"""Seats bound to cores of their own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as some

from escala.execution.binding import bound, cores_of
from escala.terms.errors import EscalaError
from escala.terms.trial import Seat

USABLE = sorted(os.sched_getaffinity(0))


def seats(*threads: int, nodes: int = 1) -> tuple[Seat, ...]:
    return tuple(Seat(rank, rank % nodes, ("cpu",), (0, 1), count) for rank, count in enumerate(threads))


@given(some.lists(some.integers(1, 4), min_size=1, max_size=6), some.integers(1, 2))
def test_seats_of_a_node_share_no_core_and_have_one_a_thread(threads: list[int], nodes: int) -> None:
    usable = range(100, 100 + sum(threads))
    placed = seats(*threads, nodes=nodes)
    for node in range(nodes):
        found = [cores_of(placed, seat.rank, usable) for seat in placed if seat.node == node]
        assert [len(cores) for cores in found] == [seat.threads for seat in placed if seat.node == node]
        together = [core for cores in found for core in cores]
        assert together == sorted(set(together))
        # The first cores of each node: none lies idle between two seats.
        assert together == list(usable[: len(together)])


def test_too_few_cores_are_told() -> None:
    assert cores_of(seats(2, 2), 1, [0, 3, 5, 7]) == (5, 7)
    with pytest.raises(EscalaError, match=r"error\[ENV-CORES\] rank 1: .*cores 3 to 4 of the 3 it may use"):
        cores_of(seats(2, 2), 1, [0, 3, 5])


@pytest.fixture
def another_thread() -> Iterator[int]:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    assert thread.native_id is not None
    yield thread.native_id
    end.set()
    thread.join()


@pytest.mark.skipif(len(USABLE) < 2, reason="binding to one core of one shows nothing")
def test_all_threads_are_bound_and_let_go_again(another_thread: int) -> None:
    with bound(seats(1, 1), 1, pin=True) as cores:
        assert cores == f"{USABLE[0]}; {USABLE[1]}"
        assert os.sched_getaffinity(0) == os.sched_getaffinity(another_thread) == {USABLE[1]}
    assert os.sched_getaffinity(0) == os.sched_getaffinity(another_thread) == set(USABLE)


def test_nothing_is_bound_without_being_asked() -> None:
    with bound(seats(1), 0, pin=False) as cores:
        assert cores is None
        assert os.sched_getaffinity(0) == set(USABLE)


def test_cores_are_told_in_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 5, 8, 9})
    monkeypatch.setattr(os, "sched_setaffinity", lambda *_: None)
    with bound(seats(4, 2), 0, pin=True) as cores:
        assert cores == "0-2, 5; 8-9"
