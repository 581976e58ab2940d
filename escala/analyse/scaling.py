"""How rows of one kind scale over the number of their devices, and the serial share that this shows.

Amdahl, Validity of the single processor approach to achieving large scale computing capabilities, 1967: on n times
the devices, of a work whose share s cannot be divided, the time is s + (1 - s) / n.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from msgspec import Struct

from escala.analyse.bootstrap import ratio
from escala.analyse.compare import ONE
from escala.analyse.language import say
from escala.analyse.plain import LONGEST_NAME, plain
from escala.analyse.row import Interval, Summary

_DIGITS = 9
"""Of a share: times in exact proportion give one that is off from 0 by some 1e-16."""
NoFit = Literal["shared cores", "repeated count", "slower", "faster"]


class Point(Struct, frozen=True):
    """One row of a family: its devices or seats, and its speed-up over the family's first row."""

    row: Summary
    ways: int
    speedup: Interval


class Family(Struct, frozen=True):
    """Rows alike in all but the number of devices, fewest first.

    `serial` is the share of the first row's time that does not shrink; its ends are the shares that fit the ends of
    all speed-ups. None for `no_fit`: seats share one processor, several rows have
    one count, or no share from 0 to 1 fits, since more devices are slower, or faster than in proportion.
    """

    kind: str
    points: tuple[Point, ...]
    serial: Interval | None
    no_fit: NoFit | None = None


def families(block: Iterable[Summary]) -> tuple[Family, ...]:
    """Those of a block's rows that have times on two numbers of devices or more, with equal work.

    A row of the strategy `single` begins every family that has no row with so few devices of its own.
    """
    timed = [row for row in block if _times(row) is not None and "simulated" not in row.doubts]
    alone = [row for row in timed if row.strategy == "single"]
    kinds: dict[tuple[object, ...], list[Summary]] = {}
    for row in timed:
        if row.strategy != "single":
            kinds.setdefault((row.strategy, *_work(row)), []).append(row)
    found = []
    for key, rows in kinds.items():
        firsts = [row for row in alone if _work(row) == key[1:] and row.ways < min(one.ways for one in rows)]
        members = sorted([*firsts[:1], *rows], key=lambda row: row.ways)
        if len({row.ways for row in members}) > 1:
            found.append(_family(rows, members, several=len(kinds) > len({one[0] for one in kinds})))
    return tuple(found)


def serial_share(points: Sequence[tuple[float, float]]) -> float:
    """The share s that fits best, by least squares, of (times the devices, speed-up); the first point, (1, 1), may be
    left out. Raises ValueError where no point has other devices than the first.
    """
    known = [(1 - 1 / ways, 1 / speedup - 1 / ways) for ways, speedup in points]
    below = sum(room * room for room, _ in known)
    if below == 0:
        raise ValueError("a serial share needs a point with more devices than the first")
    return sum(room * rest for room, rest in known) / below


def speedup_at(ways: float, serial: float) -> float:
    """Amdahl's speed-up on `ways` times the devices."""
    return 1 / (serial + (1 - serial) / ways)


def _family(rows: Sequence[Summary], members: Sequence[Summary], *, several: bool) -> Family:
    first = members[0]
    points = tuple(Point(row, row.ways, ONE if row is first else _speedup(first, row)) for row in members)
    words = [plain(rows[0].strategy, LONGEST_NAME)]
    if several:
        words += [
            say("batch {batch}", batch=f"{rows[0].batch:,}"),
            rows[0].precision,
            plain(rows[0].execution, LONGEST_NAME),
        ]
    kind = ", ".join(filter(None, words))
    if first.device == "cpu":
        return Family(kind, points, None, "shared cores")
    if len({point.ways for point in points}) < len(points):
        return Family(kind, points, None, "repeated count")
    serial = _serial(points)
    if 0 <= serial.median <= 1:
        return Family(kind, points, serial)
    return Family(kind, points, None, "slower" if serial.median > 1 else "faster")


def _serial(points: Sequence[Point]) -> Interval:
    more = [(point.ways / points[0].ways, point.speedup) for point in points[1:]]
    middle = serial_share([(ways, found.median) for ways, found in more])
    ends = [
        serial_share([(ways, end) for ways, end in side])
        for side in (
            [(ways, found.high) for ways, found in more],
            [(ways, found.low) for ways, found in more],
        )
    ]
    middle, low, high = (round(share, _DIGITS) + 0.0 for share in (middle, *ends))
    return Interval(middle, low, high, (middle,))


def _times(row: Summary) -> Interval | None:
    return None if row.target is not None else row.total_s or row.train_s


def _work(row: Summary) -> tuple[object, ...]:
    """What must be alike: the work, how a step runs, and what it runs on."""
    return row.device, row.batch, row.steps, row.samples, row.precision, row.execution


def _speedup(first: Summary, row: Summary) -> Interval:
    ours, theirs = _times(first), _times(row)
    assert ours is not None
    assert theirs is not None
    return ratio(ours.values, theirs.values)
