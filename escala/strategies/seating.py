"""Row and seat arithmetic that strategies share. No torch: plans are made without it."""

from __future__ import annotations

import itertools
import sys

import msgspec

from escala.execution.blocks import block_at, blocks, start_of
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

_FEEDING_THREADS = 4


def divide(batch: int, ways: int, unit: int = 1) -> tuple[tuple[int, int], ...]:
    """Cut `batch` rows into `ways` contiguous intervals that differ by one block at most and leave none out.

    A block is `unit` rows that stay together, as in `execution.blocks`; where there are fewer blocks than ways, some
    intervals are empty.
    """
    many = blocks(batch, unit)
    bounds = [start_of(many * way // ways, batch, unit) for way in range(ways + 1)]
    return tuple(itertools.pairwise(bounds))


def share_of(rows: tuple[int, int], batch: int, size: int, unit: int = 1) -> slice:
    """A seat's part of a shorter global batch of `size` rows, in the proportion of `rows` to `batch`.

    Over seats whose intervals tile the batch the parts tile it too: nothing is lost, nothing seen twice. It is cut
    between blocks of `unit` rows, as `rows` must be.
    """
    whole, many = blocks(batch, unit), blocks(size, unit)
    first, last = (start_of(block_at(row, batch, unit) * many // whole, size, unit) for row in rows)
    return slice(first, last)


def pieces(rows: int, most: int, unit: int = 1) -> tuple[slice, ...]:
    """A seat's `rows` rows of one batch in pieces of about `most` rows, for as many forward passes; none for none.

    Each piece is a whole number of blocks of `unit` rows: as many as `most` holds, but one at least, and so one row
    above `most` where a lone last row has joined its block.
    """
    at_once, many = max(1, most // unit), blocks(rows, unit) if rows else 0
    bounds = [start_of(min(block, many), rows, unit) for block in range(0, many + at_once, at_once)] if rows else []
    return tuple(slice(*pair) for pair in itertools.pairwise(bounds))


def chunks(rows: int, ways: int) -> tuple[int, ...]:
    """Rows of each piece into which `torch.chunk`, and so DataParallel, cuts `rows` rows for `ways` devices.

    All have the size of the first but for the last, so there may be fewer pieces than ways: 9 over 4 gives 3, 3, 3.
    """
    size = max(1, -(-rows // ways))
    return tuple(min(size, rows - start) for start in range(0, rows, size))


def threads_per_seat(host: Host, seats_on_node: int, kind: str) -> int:
    """The one rule for threads: usable cores divided among the seats of a node, for one seat as for many.

    A seat on an accelerator only feeds it and gets at most `_FEEDING_THREADS`: on 64 cores a step of the MLP on an
    H100 took 1.6 ms with 1 or 4 threads and 3 to 6 ms with 64, which wait for each other over a batch of 64 rows.
    """
    share = max(1, host.cores // seats_on_node)
    return share if kind == "cpu" else min(share, _FEEDING_THREADS)


def with_cores(seats: tuple[Seat, ...], host: Host, kind: str, execution: ExecutionSpec) -> tuple[Seat, ...]:
    """The seats with `execution.threads` threads each. Raises `Unfit` where the cores do not suffice.

    More threads in all than there are cores are allowed, as is any number that differs from the rule, which the
    doubt `other threads` then tells of; only bound seats need cores of their own.
    """
    if execution.threads is not None:
        if execution.threads > host.cores:
            raise Unfit(f"threads = {execution.threads} is more than the {host.cores} usable cores")
        seats = tuple(msgspec.structs.replace(seat, threads=execution.threads) for seat in seats)
    if not execution.pin:
        return seats
    if kind != "cpu":
        raise Unfit(f"pin = true binds seats that compute on the CPU; on {kind} they only feed")
    if sys.platform != "linux":
        raise Unfit("pin = true binds threads to cores, which only Linux lets a program do")
    asked = max(sum(seat.threads for seat in seats if seat.node == node) for node in {seat.node for seat in seats})
    if asked > host.cores:
        raise Unfit(f"pin = true needs {asked} cores for the seats of a node; {host.cores} are usable")
    return seats


def places(host: Host, kind: str, ways: int, *, simulate: bool) -> tuple[tuple[int, str], ...]:
    """(node, device) of each of `ways` seats with one device each. Raises `Unfit` where they do not fit."""
    per_node = _seats_per_node(host, kind)
    if per_node == 0:
        raise Unfit(f"needs a {kind} device; this host has none")
    capacity = per_node * host.nodes
    if ways > capacity and not simulate:
        raise Unfit(
            f"needs {ways} {_plural(kind, ways)}; this host has {capacity} (simulate = true lets seats share one)"
        )
    if ways > capacity:
        return tuple((0, _device(kind, way % per_node)) for way in range(ways))
    return tuple((way // per_node, _device(kind, way % per_node)) for way in range(ways))


def refuse_capture(execution: ExecutionSpec, name: str) -> None:
    """Raises `Unfit` where steps are to be recorded, of a strategy with whose exchanges nobody has tried that."""
    if execution.capture:
        raise Unfit(f"capture records steps of single and ddp; it has not been tried with the exchanges of {name}")


def data_parallel_seats(
    host: Host, kind: str, ways: int, batch: int, *, simulate: bool, unit: int = 1
) -> tuple[Seat, ...]:
    """Seats with one device and an equal share of rows each, or of blocks of `unit` rows."""
    spots = places(host, kind, ways, simulate=simulate)
    on_node = max(sum(1 for node, _ in spots if node == other) for other in {node for node, _ in spots})
    threads = threads_per_seat(host, on_node, kind)
    return tuple(
        Seat(rank, node, (device,), rows, threads)
        for rank, ((node, device), rows) in enumerate(zip(spots, divide(batch, ways, unit), strict=True))
    )


def _seats_per_node(host: Host, kind: str) -> int:
    available = host.cores if kind == "cpu" else len(host.of_kind(kind))
    return min(available, host.seats_per_node) if host.seats_per_node else available


def _device(kind: str, index: int) -> str:
    return "cpu" if kind == "cpu" else f"{kind}:{index}"


def _plural(kind: str, ways: int) -> str:
    noun = "CPU core" if kind == "cpu" else f"{kind} device"
    return noun if ways == 1 else f"{noun}s"
