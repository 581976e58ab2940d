"""Which row of one campaign is which of another: by what they are first, by their names where that says nothing."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from escala.analyse.compare import point_order
from escala.analyse.doubts import Case, doubts_of
from escala.analyse.facets import DATA, DEVICE, Facets, facets_of
from escala.analyse.group import Group, point_key
from escala.analyse.row import Summary
from escala.analyse.summary import TOLERANCE, rows_of
from escala.terms.record import Record


class Side(Struct, frozen=True):
    """One row of one of the campaigns."""

    row: Summary
    group: Group
    facets: Facets


class Pair(Struct, frozen=True):
    """The same row in both campaigns."""

    before: Side
    after: Side


class Pairing(Struct, frozen=True):
    """Pairs, and the rows that only one campaign has, each in the order given."""

    pairs: tuple[Pair, ...]
    only_before: tuple[Side, ...]
    only_after: tuple[Side, ...]


def sides_of(
    records: Sequence[Record],
    labels: Sequence[str] = (),
    points: Sequence[Mapping[str, Any]] = (),
    tolerance: float = TOLERANCE,
) -> tuple[Side, ...]:
    """Every row of a campaign, in the order of `points`, and in each of `labels`; what they leave out follows.

    Raises EscalaError DATA-HASH where repeats of one trial saw different data.
    """
    columns = {label: place for place, label in enumerate(labels)}
    lines = {point_key(point): place for place, point in enumerate(points)}

    def order(side: Side) -> tuple[Any, ...]:
        line = lines.get(point_key(side.row.point), len(lines))
        return line, point_order(side.row.point), columns.get(side.row.label, len(columns))

    return tuple(sorted((_side(row, group, tolerance) for row, group in rows_of(records)), key=order))


def _side(row: Summary, group: Group, tolerance: float) -> Side:
    alone = Case(row, group.done, group.timed, None, group.likeness)
    return Side(replace(row, tolerance=tolerance, doubts=doubts_of(alone)), group, facets_of(group))


def paired(before: Sequence[Side], after: Sequence[Side]) -> Pairing:
    """Rows that are the same in all but repeats; then those that only met other data or another device; then, of what
    is left, those of one name and place in the sweep.
    """
    found: dict[int, int] = {}
    for likeness in _STAGES:
        taken = set(found.values())
        waiting: dict[Hashable, list[int]] = {}
        for place, side in enumerate(after):
            if place not in taken:
                waiting.setdefault(likeness(side), []).append(place)
        for place, side in enumerate(before):
            if place not in found and (others := waiting.get(likeness(side))):
                found[place] = others.pop(0)
    taken = set(found.values())
    return Pairing(
        tuple(Pair(side, after[found[place]]) for place, side in enumerate(before) if place in found),
        tuple(side for place, side in enumerate(before) if place not in found),
        tuple(side for place, side in enumerate(after) if place not in taken),
    )


def _place(side: Side) -> Hashable:
    return side.row.label, point_key(side.row.point)


def _data(side: Side) -> Hashable:
    return tuple(side.facets.must.get(name) for name in DATA)


def _device(side: Side) -> Hashable:
    return side.facets.must[DEVICE]


_STAGES: tuple[Callable[[Side], Hashable], ...] = (
    lambda side: (side.facets.definition, _data(side), _device(side), _place(side)),
    lambda side: (side.facets.definition, _data(side), _device(side)),
    lambda side: (side.facets.definition, _device(side), _place(side)),
    lambda side: (side.facets.definition, _data(side), _place(side)),
    lambda side: (side.facets.definition, _place(side)),
    lambda side: side.facets.definition,
    _place,
)
"""What two rows must have in common, the closest likeness first."""
