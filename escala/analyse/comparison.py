"""Two campaigns set against each other: row by row, and all rows together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from escala.analyse.bootstrap import exponential, log_sums
from escala.analyse.compare import point_text
from escala.analyse.pairing import Pair, Pairing, Side, paired
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain
from escala.analyse.row import Interval
from escala.analyse.row_change import RowChange, Word, around, change_of, verdict_of
from escala.analyse.sentences import ENOUGH_TO_WIN
from escala.analyse.wording import counted, listed, number, times_text
from escala.terms.errors import EscalaError

_SHOWN = 5
_ANYWAY = "compare campaigns of the same work on the same device, or give --anyway"


class Comparison(Struct, frozen=True):
    """How a campaign B stands to a campaign A. Field names are public: add, never rename.

    `before` and `after` name A and B. `time_ratio` is the geometric mean of the rows' ratios that had enough runs;
    above 1: B is slower. `around` tells what differs of software and machine. `only_before` and `only_after` name the
    rows that one of them lacks, `untimed` those that neither has times of.
    """

    before: str
    after: str
    verdict: Word
    time_ratio: Interval | None
    rows: tuple[RowChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    untimed: tuple[str, ...]
    around: tuple[str, ...]
    same_within: float
    sentences: tuple[str, ...]


def compared(
    before: Sequence[Side],
    after: Sequence[Side],
    names: tuple[str, str],
    *,
    same_within: float,
    anyway: bool,
) -> Comparison:
    """B against A, rows in A's order. `names` say what A and B are; `same_within` is a share of the time.

    Raises EscalaError RES-COMPARE where no row is in both, or, without `anyway`, where rows that both timed differ in
    what must be alike.
    """
    found = paired(before, after)
    pairs = [pair for pair in found.pairs if _is_timed(pair)]
    rows = tuple(change_of(pair, same_within) for pair in pairs)
    _refuse(rows, found, names, anyway)
    total = _total(pairs, rows)
    verdict = verdict_of(total, ENOUGH_TO_WIN, same_within)
    return Comparison(
        before=names[0],
        after=names[1],
        verdict=verdict,
        time_ratio=total,
        rows=rows,
        only_before=tuple(map(_name, found.only_before)),
        only_after=tuple(map(_name, found.only_after)),
        untimed=tuple(_name(pair.before) for pair in found.pairs if not _is_timed(pair)),
        around=_around(pairs),
        same_within=same_within,
        sentences=tuple(_sentences(rows, total, verdict)),
    )


def refuse_slower(comparison: Comparison, share: float) -> None:
    """Raises EscalaError RES-SLOWER where a row is slower by more than `share` of its time, the whole interval beyond
    it, or can no longer be run.
    """
    told = [f"{change_name(row)} no longer runs" for row in comparison.rows if row.broken]
    told += [
        f"{change_name(row)} takes {times_text(row.time_ratio)} the time"
        for row in comparison.rows
        if row.verdict == "slower" and row.time_ratio and row.time_ratio.low > 1 + share
    ]
    if told:
        raise EscalaError(
            "RES-SLOWER",
            f"{comparison.after} against {comparison.before}",
            ", ".join(told[:_SHOWN]) + (f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""),
            expected=f"no row slower by more than {number(100 * share)} %",
            next_step="find what changed, or raise --fail-above",
        )


def change_name(row: RowChange) -> str:
    """`ddp x2, train.batch = 64`; `old -> new` where the name changed."""
    label = plain(row.label, LONGEST_NAME)
    if row.other_label is not None:
        label += f" -> {plain(row.other_label, LONGEST_NAME)}"
    return ", ".join(part for part in (label, point_text(row.point)) if part)


def _refuse(rows: Sequence[RowChange], found: Pairing, names: tuple[str, str], anyway: bool) -> None:
    where = f"{names[0]} and {names[1]}"
    if not rows:
        ours, theirs = ("; ".join(map(_name, side[:_SHOWN])) for side in (found.only_before, found.only_after))
        what = f"no row with times is in both: only in A {ours or 'none'}, only in B {theirs or 'none'}"
        raise EscalaError("RES-COMPARE", where, what, next_step="compare campaigns of the same experiment")
    told = [f"{change_name(row)}: {', '.join(row.not_alike)}" for row in rows if row.not_alike and row.time_ratio]
    if told and not anyway:
        more = f"; and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        what = f"{counted(len(told), 'row')} cannot be compared: {'; '.join(told[:_SHOWN])}{more}"
        raise EscalaError("RES-COMPARE", where, what, next_step=_ANYWAY)


def _name(side: Side) -> str:
    return ", ".join(part for part in (plain(side.row.label, LONGEST_NAME), point_text(side.row.point)) if part)


def _total(pairs: Sequence[Pair], rows: Sequence[RowChange]) -> Interval | None:
    known = [
        (row.before.values, row.after.values)
        for pair, row in zip(pairs, rows, strict=True)
        if row.before and row.after and row.measure != "s to score" and _enough(pair)
    ]
    if not known:
        return None
    samples = [values for pair in known for values in pair]
    return exponential(log_sums(samples, [[-1 / len(known), 1 / len(known)] * len(known)])[0])


def _is_timed(pair: Pair) -> bool:
    return pair.before.row.runs > 0 or pair.after.row.runs > 0


def _enough(pair: Pair) -> bool:
    return min(pair.before.row.runs, pair.after.row.runs) >= ENOUGH_TO_WIN


def _around(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """What differs in all pairs is said once, what differs in some of them by how many."""
    counts = Counter(one for pair in pairs for one in around(pair.before, pair.after))
    told = []
    for (name, old, new), count in counts.items():
        of = "" if count == len(pairs) else f" ({counted(count, 'row')})"
        told.append(plain(f"{name}: {old} -> {new}", LONGEST_REASON) + of)
    return tuple(told)


def _sentences(rows: Sequence[RowChange], total: Interval | None, verdict: Word) -> list[str]:
    counts = Counter(row.verdict for row in rows)
    said = [f"{counts[word]} {text}" for word, text in _COUNTED.items() if counts[word]]
    told = [f"Of {counted(len(rows), 'row')} in both: {', '.join(said)}."]
    if total is not None:
        told.append(f"All together, B takes {times_text(total)} the time of A: {_ALL[verdict]}.")
    worse = [change_name(row) for row in rows if row.worse_score]
    if worse:
        told.append(f"A worse score in B: {listed(worse)}.")
    told += [f"{change_name(row)} has times in A and none in B." for row in rows if row.broken]
    if any(row.not_alike for row in rows):
        told.append("Some rows are not alike and were compared all the same; see what differs.")
    return told


_COUNTED: dict[Word, str] = {
    "slower": "slower",
    "faster": "faster",
    "same": "the same",
    "cannot tell": "that cannot be told apart",
}
_ALL: dict[Word, str] = {
    "slower": "slower",
    "faster": "faster",
    "same": "the same",
    "cannot tell": "which is faster cannot be told",
}
