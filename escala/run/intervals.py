"""Stretches of time as pairs of a begin and an end, in one unit; arithmetic on sets of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Stretch = tuple[float, float]


def joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """The same time, in order, none touching another; empty stretches are gone."""
    found: list[Stretch] = []
    for begin, end in sorted(stretch for stretch in stretches if stretch[0] < stretch[1]):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def within(stretches: Iterable[Stretch], window: Stretch) -> list[Stretch]:
    """What of them lies in the window, joined."""
    return joined((max(begin, window[0]), min(end, window[1])) for begin, end in stretches)


def without(stretches: Iterable[Stretch], others: Iterable[Stretch]) -> list[Stretch]:
    """What of them lies in none of the others, joined."""
    found: list[Stretch] = []
    away = joined(others)
    first = 0
    for begin, end in joined(stretches):
        while first < len(away) and away[first][1] <= begin:
            first += 1
        for other_begin, other_end in away[first:]:
            if other_begin >= end:
                break
            if other_begin > begin:
                found.append((begin, other_begin))
            begin = max(begin, other_end)
        if begin < end:
            found.append((begin, end))
    return found


def length(stretches: Sequence[Stretch]) -> float:
    """Time in all, of stretches that do not overlap."""
    return sum(end - begin for begin, end in stretches)
