"""One plot of a chart, and which rows it is of."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isfinite

from msgspec import Struct

from escala.analyse.compare import Block, blocks, headings
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import name
from escala.report.charts.layers import Part


class Plot(Struct, frozen=True):
    """`heading` says what sets it apart from the chart's other plots; empty for an only one."""

    heading: str
    rows: tuple[Summary, ...]
    part: Part
    notes: tuple[str, ...] = ()
    """What is to be said beside it, a sentence each."""


def by_block(rows: Iterable[Summary], draw: Callable[[Block], Part | None]) -> tuple[Plot, ...]:
    """A plot a block of comparable rows, of those that `draw` makes something of, in the order given."""
    found = blocks(rows)
    made = []
    for block, heading in zip(found, headings(found), strict=True):
        part = draw(block)
        if part is not None:
            made.append(Plot(heading, block, part))
    return tuple(made)


def drawable(found: Interval | None) -> Interval | None:
    """The interval, if its median has a place on an axis."""
    return found if found is not None and isfinite(found.median) else None


def ends(found: Interval, farthest: float) -> dict[str, float]:
    """`low` and `high` as an axis can show them: what has no end goes on to `farthest`."""
    return {
        "low": found.low if isfinite(found.low) else found.median,
        "high": found.high if isfinite(found.high) else max(farthest, found.median),
    }


def farthest(found: Iterable[Interval]) -> float:
    """The largest end that is finite."""
    return max((end for one in found for end in (one.median, one.low, one.high) if isfinite(end)), default=0.0)


def names_of(rows: Iterable[Summary]) -> dict[int, str]:
    """What each row is called in a plot, by its `id`: two names that are shortened to the same stay apart."""
    found: dict[int, str] = {}
    for row in rows:
        shown = name(row)
        same = sum(other == shown or other.startswith(f"{shown} (") for other in found.values())
        found[id(row)] = f"{shown} ({same + 1})" if same else shown
    return found
