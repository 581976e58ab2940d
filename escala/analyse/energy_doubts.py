"""The rules that doubt a row's energy: the reason in figures, or None where all is well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from escala.analyse.energy_rows import same_meter
from escala.analyse.language import marked, say
from escala.analyse.plain import LONGEST_REASON, plain
from escala.analyse.row import Summary
from escala.analyse.wording import AGAINST, counted, listed, percent
from escala.terms.energy import AGREEMENT
from escala.terms.record import Record

_MORE = marked("the counter tells {share} more than the integral")
_LESS = marked("the counter tells {share} less than the integral")
_WAYS: dict[str, str] = {
    "counter": marked("by counter"),
    "sampled": marked("by sampled power"),
    "estimated": marked("estimated"),
}
_BOARD = marked("board")


def other_meter(row: Summary, baseline: Summary | None) -> str | None:
    """Energy that was read in another way than the baseline's, or than in other runs of the row."""
    told = []
    if baseline is not None and row.energy_j and baseline.energy_j and not same_meter(row, baseline):
        told.append(say(AGAINST, one=read_text(row.energy_how), other=read_text(baseline.energy_how)))
    if row.energy_left_out:
        told.append(say("{runs} read in another way is left out", runs=counted(row.energy_left_out, "run")))
    return "; ".join(told) or None


def disagrees(row: Summary, done: Sequence[Record]) -> str | None:
    """A counter and an integral that tell of different energies, over windows that are long enough for both."""
    found = row.counter_over_integral
    short = any("short energy window" in record.doubts for record in done)
    if found is None or short or abs(found.median - 1) <= AGREEMENT:
        return None
    told = _MORE if found.median > 1 else _LESS
    return say(told, share=percent(abs(found.median - 1)))


def kind(part: str) -> str:
    """`cuda` of `cuda:0`, `package` of `package-0-die-1`; a board's own number is a board."""
    name = part.partition(":")[0].partition("-")[0]
    return name if name.isalpha() and name.islower() else say(_BOARD)


def read_text(how: Mapping[str, str]) -> str:
    """`2 x cuda by counter, package by sampled power`."""
    told = []
    for way in dict.fromkeys(how.values()):
        counts = Counter(kind(part) for part, by in how.items() if by == way)
        names = [name if count == 1 else f"{count} x {name}" for name, count in counts.items()]
        told.append(f"{listed(names)} {say(_WAYS.get(way, way))}")
    return plain(", ".join(told), LONGEST_REASON) or say("nothing")
