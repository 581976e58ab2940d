"""Rows set against each other: which belong in one block, how much faster each is, which may be ranked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from escala.analyse import energy_rows
from escala.analyse.bootstrap import inverse, ratio, scaled
from escala.analyse.doubts import in_order
from escala.analyse.group import point_key
from escala.analyse.language import say
from escala.analyse.parity import lost
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain
from escala.analyse.row import Interval, Summary
from escala.analyse.to_score import mostly_never, speedup
from escala.analyse.wording import likeness_text, name
from escala.terms.doubts import Doubt

NOT_RANKED: tuple[Doubt, ...] = ("simulated", "other work", "score below baseline")
"""A row with one of these is shown, but cannot win."""
ONE = Interval(1.0, 1.0, 1.0, (1.0,))

Block = tuple[Summary, ...]


def blocks(rows: Iterable[Summary]) -> tuple[Block, ...]:
    """Rows that may be compared: same sweep point, same data, same kind of host; in the order given."""
    found: dict[tuple[object, ...], list[Summary]] = {}
    for row in rows:
        found.setdefault((row.likeness, point_key(row.point), row.digest), []).append(row)
    return tuple(tuple(block) for block in found.values())


def headings(all_blocks: Sequence[Block]) -> tuple[str, ...]:
    """What sets each block apart from the others: swept values; data and host only where they differ."""
    several_hosts = len({block[0].likeness for block in all_blocks}) > 1
    places = [(block[0].likeness, point_key(block[0].point)) for block in all_blocks]
    found = []
    for block, place in zip(all_blocks, places, strict=True):
        row = block[0]
        parts = [point_text(row.point)] if row.point else []
        if places.count(place) > 1:
            digest = plain(row.digest or say("never read"), 12)
            parts.append(say("data {data} {digest}", data=plain(row.data, LONGEST_NAME), digest=digest))
        if several_hosts:
            parts.append(say("on {machine}", machine=likeness_text(row.likeness)))
        found.append("; ".join(parts))
    return tuple(found)


def point_text(point: dict[str, Any]) -> str:
    """`train.batch = 64, execution.precision = bf16`."""
    values = ((key, value if isinstance(value, str) else _json(value)) for key, value in point.items())
    return plain(", ".join(f"{key} = {value}" for key, value in values), LONGEST_REASON)


def point_order(point: dict[str, Any]) -> list[tuple[str, bool, float, str]]:
    """Sort key of a sweep point: numbers by value, whatever the order in which they were recorded."""
    return [
        (key, False, float(value), "") if isinstance(value, int | float) else (key, True, 0.0, str(value))
        for key, value in sorted(point.items())
    ]


def baseline_of(block: Iterable[Summary]) -> Summary | None:
    """The row that the others are measured against, where it has times."""
    return next((row for row in block if row.is_baseline), None)


def against(row: Summary, baseline: Summary) -> Summary:
    """`row` with speed-ups and efficiencies over `baseline`, and its energy as a multiple of the baseline's."""
    if row is baseline:
        total = ONE if row.total_s and row.target is None else None
        train = ONE if row.train_s else None
    else:
        total, train = _speedup_total(row, baseline), _speedup_train(row, baseline)
    share = baseline.ways / row.ways
    return replace(
        row,
        is_baseline=row is baseline,
        speedup_total=total,
        speedup_train=train,
        speedup_to_score=_speedup_to_score(row, baseline),
        score_lost=lost(row, baseline),
        efficiency_total=scaled(total, share) if total else None,
        efficiency_train=scaled(train, share) if train else None,
        **energy_rows.against(row, baseline),
    )


def _has_total(row: Summary) -> bool:
    # With a target every run is as long as it happened to take, and one that came to nothing is the longest.
    return row.total_s is not None and row.target is None


def _speedup_total(row: Summary, baseline: Summary) -> Interval | None:
    if row.total_s is None or baseline.total_s is None or not _has_total(row) or not _has_total(baseline):
        return None
    return ratio(baseline.total_s.values, row.total_s.values)


def _speedup_to_score(row: Summary, baseline: Summary) -> Interval | None:
    if row is baseline:
        return None if row.to_score_s is None or mostly_never(row) else ONE
    return speedup(row, baseline)


def _speedup_train(row: Summary, baseline: Summary) -> Interval | None:
    # A budget of steps is work of any size, so its rate speaks and not its time.
    by_rate = not _has_total(row) or not _has_total(baseline)
    if by_rate and row.samples_per_second and baseline.samples_per_second:
        return ratio(row.samples_per_second.values, baseline.samples_per_second.values)
    if row.train_s is None or baseline.train_s is None:
        return None
    return ratio(baseline.train_s.values, row.train_s.values)


def pace(row: Summary) -> Interval | None:
    """What rows are ranked by: seconds of all phases, seconds a sample under a budget of steps, or, where there is a
    target, seconds to reach it; None for a row whose runs mostly did not.
    """
    if row.target is not None:
        return None if mostly_never(row) else row.to_score_s
    if row.total_s is not None:
        return row.total_s
    return inverse(row.samples_per_second) if row.samples_per_second else row.train_s


def ranked(block: Iterable[Summary]) -> tuple[Summary, ...]:
    """Rows that did the baseline's work as well as it did, fastest first; none where the baseline has no rank."""
    rows = [(found.median, row) for row in block if (found := pace(row)) and not set(NOT_RANKED) & set(row.doubts)]
    if not any(row.is_baseline for _, row in rows):
        return ()
    return tuple(row for _, row in sorted(rows, key=lambda pair: pair[0]))


def rivals(ranking: Sequence[Summary]) -> tuple[Summary, ...]:
    """Rows whose interval overlaps the fastest one's."""
    if not ranking or (best := pace(ranking[0])) is None:
        return ()
    return tuple(row for row in ranking[1:] if (own := pace(row)) and own.overlaps(best))


def with_noise(block: Sequence[Summary]) -> Block:
    """The block with `within noise` on every row that cannot be told apart from its fastest one."""
    ranking = ranked(block)
    noisy = [id(row) for row in rivals(ranking)]
    return tuple(_noisy(row, name(ranking[0])) if id(row) in noisy else row for row in block)


def _noisy(row: Summary, fastest: str) -> Summary:
    reason = say("cannot be told apart from {row}", row=fastest)
    return replace(row, doubts=in_order({**row.doubts, "within noise": reason}))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
