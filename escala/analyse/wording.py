"""Figures as short text: few digits, no more than they carry, the same everywhere."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import floor, inf, isfinite, log10

from escala.analyse.language import marked, noun, say
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain, reason_text
from escala.analyse.row import Interval, Summary

NEVER = marked("never")
NO_LIMIT = marked("no limit")
SCORE = marked("score")
AGAINST = marked("{one} against {other}")
_CORES = re.compile(r"(\d+) cores")
_JOULES = (("MJ", 1e6), ("kJ", 1e3))


def number(value: float, digits: int = 3) -> str:
    """`digits` significant digits, thousands set apart, whole parts never rounded away: `0.0123`, `588,519`."""
    return _fixed(value, _decimals(value, digits))


def interval_text(found: Interval, digits: int = 3) -> str:
    """`1.31 [1.25, 1.38]`; of a single run there is no interval, only its figure; what is infinite is `never`."""
    decimals = _decimals(found.median, digits)
    if len(found.values) < 2 or found.low == inf:
        return _fixed(found.median, decimals)
    # A comma parts the ends already, so none parts their thousands.
    median, low, high = (_fixed(value, decimals, "") for value in (found.median, found.low, found.high))
    return f"{median} [{low}, {high}]"


def speedup_text(found: Interval) -> str:
    """A speed-up in a cell: `1.31 [1.25, 1.38]`, `0.31 [0.30, 0.32]`."""
    # Where a side of the ratio may never come to its end, neither has the ratio one.
    return interval_text(found, digits=3 if found.median >= 1 else 2).replace(say(NEVER), say(NO_LIMIT))


def times_text(found: Interval) -> str:
    """A speed-up in a sentence: `1.31x [1.25, 1.38]`."""
    median, _, rest = speedup_text(found).partition(" ")
    return f"{median}x {rest}".rstrip()


def name(row: Summary) -> str:
    """A row's label, safe to show and no longer than a name should be."""
    return plain(row.label, LONGEST_NAME)


def likeness_text(likeness: Sequence[str]) -> str:
    """`Xeon Test, 8 cores, 4 x cuda Test GPU, torch 2.13.0`."""
    counts = Counter(_CORES.sub(lambda found: counted(int(found[1]), "core"), part) for part in likeness)
    told = ", ".join(part if count == 1 else f"{count} x {part}" for part, count in counts.items())
    return plain(told, LONGEST_REASON)


def score_name(metric: str | None) -> str:
    """A metric, safe to show; those of escala's own workloads have a name in each language."""
    return plain(say(metric or SCORE), LONGEST_NAME)


def score_text(row: Summary) -> str:
    """`accuracy 0.8721`, or nothing."""
    return "" if row.score is None else f"{score_name(row.score_name)} {number(row.score.median, 4)}"


def target_text(row: Summary) -> str:
    """`accuracy 0.9`: the score that was to be reached, as it was written."""
    return f"{score_name(row.target_name)} {row.target:.6g}" if row.target is not None else ""


def outcomes_text(row: Summary) -> str:
    """`unfit: needs 2 GPUs`: what became of a row, and the reason safe to show."""
    told = ", ".join(map(say, row.outcomes))
    return f"{told}: {reason_text(row.reason)}" if row.reason else told


def reached_text(row: Summary) -> str:
    """`3 of 5 runs reached accuracy 0.9`."""
    runs = counted(row.tried or 0, "run")
    return say("{count} of {runs} reached {target}", count=row.reached, runs=runs, target=target_text(row))


def speedup_of(row: Summary) -> Interval | None:
    """What counts as the row's speed-up: to the target where there is one, else over all phases, else in training."""
    if row.target is not None:
        return row.speedup_to_score
    return row.speedup_total or row.speedup_train


def percent(share: float) -> str:
    """`89.5 %`."""
    return f"{number(100 * share)} %"


def seconds(value: float) -> str:
    """A duration in the unit that suits it: `0.40 ms`, `12.3 s`."""
    return f"{number(1000 * value)} ms" if value < 0.1 else f"{number(value)} s"


def size(count: int) -> str:
    """Bytes in the unit that suits them: `300 MiB`, `1.25 GiB`."""
    if count >= 2**30:
        return f"{number(count / 2**30)} GiB"
    return f"{number(count / 2**20)} MiB"


def joules(found: Interval) -> str:
    """Energy in the unit that suits it: `588 J`, `1.17 [1.16, 1.19] MJ`, `never`."""
    if found.median == inf:
        return interval_text(found)
    unit, one = next((unit for unit in _JOULES if abs(found.median) >= unit[1]), ("J", 1.0))
    values = tuple(value / one for value in found.values)
    return f"{interval_text(Interval(found.median / one, found.low / one, found.high / one, values))} {unit}"


def counted(count: int, one: str, several: str = "") -> str:
    """`1 run`, `3 runs`."""
    return f"{count:,} {noun(one, plural=count != 1, several=several)}"


def listed(parts: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return parts[0] if len(parts) == 1 else say("{parts} and {last}", parts=", ".join(parts[:-1]), last=parts[-1])


def _decimals(value: float, digits: int) -> int:
    if value == 0 or not isfinite(value):
        return 0
    # Rounded first: 9.996 has one digit more before the point once it is rounded.
    rounded = float(f"{abs(value):.{digits - 1}e}")
    return max(0, digits - 1 - floor(log10(rounded)))


def _fixed(value: float, decimals: int, thousands: str = ",") -> str:
    if value == inf:
        return say(NEVER)
    if abs(value) >= 1e12 or decimals > 9:
        return f"{value:.2e}"
    return f"{value:{thousands}.{decimals}f}"
