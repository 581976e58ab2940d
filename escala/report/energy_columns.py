"""Energy and EDP in the table of a block, and the table of its own that tells of both in full."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from escala.analyse.compare import blocks, headings
from escala.analyse.energy import not_measured, only_why
from escala.analyse.energy_doubts import kind, read_text
from escala.analyse.language import marked, say
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import interval_text, joules, number, percent, speedup_text
from escala.report.column import Column
from escala.report.section import Section
from escala.terms.energy import PHASES

ENERGY = marked("energy")
ENERGY_LEGEND = marked(
    "Energy is that of the parts of the machine that a row used, over all phases; EDP is energy times time, as a "
    "multiple of the baseline's. Below 1 is better. What is marked est. is a guess and no measurement."
)
SECTION_LEGEND = marked(
    "With idle adds the boards that a row left idle, and idle share is their part of the sum; above idle is less "
    "what its own parts take with nothing running. J/sample is of training alone. EDP is energy times time."
)
MOST_PARTS = 2
"""Watts of more parts of a kind than this are shown as their range."""
ESTIMATED = marked(" est.")

_HEADING = marked("Energy")

Cell = Callable[[Summary], str]


def energy_columns(rows: Sequence[Summary]) -> list[Column]:
    """Two columns for the table of a block; none where no row has energy."""
    if all(row.energy_j is None for row in rows):
        return []
    return [
        Column(say(ENERGY), tuple(_energy(row) for row in rows)),
        Column(say("EDP,\n× baseline"), tuple(_times(row, row.edp_ratio) for row in rows)),
        *_to_score(rows),
    ]


def energy_notes(rows: Sequence[Summary]) -> tuple[str, ...]:
    """`Energy: not measured: ...`, where no row of a block has energy."""
    if any(row.energy_j is not None for row in rows):
        return ()
    reasons = dict.fromkeys(_why(row) for row in rows if row.energy_reason is not None)
    return (f"{say(_HEADING)}: {not_measured('; '.join(reasons))}",) if reasons else ()


def energy_sections(summaries: Sequence[Summary]) -> tuple[Section, ...]:
    """A table of energy for each block in which a row has any."""
    found = blocks(summaries)
    return tuple(
        _section([row for row in block if row.outcomes.get("done")], heading)
        for block, heading in zip(found, headings(found), strict=True)
        if any(row.energy_j is not None for row in block)
    )


def _section(rows: Sequence[Summary], heading: str) -> Section:
    known = [row for row in rows if row.energy_j is not None]
    columns = [
        Column(say("strategy"), tuple(plain(row.label, LONGEST_NAME) for row in known), text=True),
        Column(say("read"), tuple(read_text(row.energy_how) for row in known), text=True),
        Column(say("runs"), tuple(str(row.energy_runs) for row in known)),
        *(Column(say(title), tuple(of(row) for row in known)) for title, of in _FIGURES.items()),
        *_watts(known, marked("mean W,\n{part}"), lambda row: row.mean_w),
        *_watts(known, marked("peak W,\n{part}"), lambda row: row.peak_w),
        Column(say("counter /\nintegral"), tuple(_text(row.counter_over_integral) for row in known)),
    ]
    missing = [(plain(row.label, LONGEST_NAME), not_measured(_why(row))) for row in rows if row.energy_reason]
    return Section(
        ": ".join(filter(None, (say(_HEADING), heading))),
        tuple(column for column in columns if any(column.cells)),
        tuple(missing),
        (say(SECTION_LEGEND),),
    )


def _to_score(rows: Sequence[Summary]) -> Iterator[Column]:
    if any(row.to_score_energy_j for row in rows):
        yield Column(say("energy\nto score"), tuple(_joules(row, row.to_score_energy_j) for row in rows))


def _energy(row: Summary) -> str:
    # With a target it would be the most where the least was reached.
    return _joules(row, row.energy_j) if row.target is None else ""


def _joules(row: Summary, found: Interval | None) -> str:
    return joules(found) + _mark(row) if found else ""


def _times(row: Summary, found: Interval | None) -> str:
    return speedup_text(found) + _mark(row) if found else ""


def _mark(row: Summary) -> str:
    return say(ESTIMATED) if "estimated" in row.energy_how.values() else ""


def _why(row: Summary) -> str:
    return plain(only_why(row.energy_reason or ""), LONGEST_REASON)


def _median(found: Interval | None) -> str:
    return number(found.median) if found else ""


def _text(found: Interval | None) -> str:
    return interval_text(found) if found else ""


def _of_phase(phase: str) -> Cell:
    return lambda row: _joules(row, _single(row.energy_phase_j.get(phase)))


def _single(found: Interval | None) -> Interval | None:
    """The median alone: how well it is known is told of the whole."""
    return Interval(found.median, found.median, found.median, (found.median,)) if found else None


def _watts(rows: Sequence[Summary], title: str, of: Callable[[Summary], Mapping[str, Interval]]) -> Iterator[Column]:
    """A column for each kind of part that a row used, and one for the boards that idled."""
    kinds = {_kind(row, part): part in row.idle_parts for row in rows for part in of(row)}
    for one in sorted(kinds, key=kinds.__getitem__):
        cells = ([found.median for part, found in of(row).items() if _kind(row, part) == one] for row in rows)
        yield Column(say(title, part=plain(one, LONGEST_NAME)), tuple(map(_range, cells)))


def _kind(row: Summary, part: str) -> str:
    return say("{part} idle", part=kind(part)) if part in row.idle_parts else kind(part)


def _range(watts: Sequence[float]) -> str:
    if len(watts) <= MOST_PARTS:
        return " + ".join(number(value) for value in watts)
    return say("{low} to {high}", low=number(min(watts)), high=number(max(watts)))


_FIGURES: dict[str, Cell] = {
    **{phase: _of_phase(phase) for phase in PHASES},
    marked("with idle"): lambda row: _joules(row, _single(row.energy_host_j)),
    marked("idle\nshare"): lambda row: percent(row.idle_share.median) if row.idle_share else "",
    marked("above idle"): lambda row: _joules(row, _single(row.energy_above_idle_j)),
    marked("energy,\n× baseline"): lambda row: _times(row, row.energy_ratio),
    marked("EDP with idle,\n× baseline"): lambda row: _times(row, row.edp_host_ratio),
    marked("J/sample"): lambda row: _median(row.joules_per_sample),
    marked("samples/J"): lambda row: _median(row.samples_per_joule),
    marked("EDP, J s"): lambda row: _median(row.edp) if row.target is None else "",
    marked("EDP\nto score, J s"): lambda row: _text(row.to_score_edp),
    marked("CO2, g\nestimated"): lambda row: _median(row.co2_g),
}
