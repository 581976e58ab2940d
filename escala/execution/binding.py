"""Binds a seat's threads to cores of its own, so that seats do not push each other from core to core."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence

from escala.terms.errors import EscalaError
from escala.terms.trial import Seat


def cores_of(seats: Sequence[Seat], rank: int, usable: Sequence[int]) -> tuple[int, ...]:
    """The cores of one seat: those of its node in ascending order, handed out by rank, one for each thread.

    Neighbours in number share caches, where any cores do. Raises `ENV-CORES` where `usable` are too few.
    """
    own = seats[rank]
    first = sum(seat.threads for seat in seats[:rank] if seat.node == own.node)
    found = tuple(sorted(usable)[first : first + own.threads])
    if len(found) < own.threads:
        raise EscalaError(
            "ENV-CORES",
            f"rank {rank}",
            f"it would be bound to cores {first + 1} to {first + own.threads} of the {len(usable)} it may use",
            expected="as many cores as when the trial was planned",
            next_step="set execution.pin = false where a launcher has bound the processes already",
        )
    return found


@contextlib.contextmanager
def bound(seats: Sequence[Seat], rank: int, *, pin: bool) -> Iterator[str | None]:
    """With `pin`, all threads of this process keep to the seat's cores; new threads take over what their maker has.

    Yields the cores of all seats of the node, in words: `0-1; 2-3`; None without `pin`. Afterwards every thread may
    go where the process might before. Raises `ENV-CORES` as `cores_of` does.
    """
    if not pin:
        yield None
        return
    usable = sorted(os.sched_getaffinity(0))
    neighbours = [seat.rank for seat in seats if seat.node == seats[rank].node]
    _bind_all(cores_of(seats, rank, usable))
    try:
        yield "; ".join(_in_words(cores_of(seats, other, usable)) for other in neighbours)
    finally:
        _bind_all(usable)


def _bind_all(cores: Sequence[int]) -> None:
    for thread in os.listdir("/proc/self/task"):
        # It may have ended meanwhile.
        with contextlib.suppress(ProcessLookupError):
            os.sched_setaffinity(int(thread), cores)


def _in_words(cores: Sequence[int]) -> str:
    """`0-3, 8`: runs of neighbours, and single cores."""
    runs = list[list[int]]()
    for core in cores:
        if runs and core == runs[-1][-1] + 1:
            runs[-1].append(core)
        else:
            runs.append([core])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
