"""Joules of each row, by phase."""

from __future__ import annotations

import altair as alt

from escala.analyse.compare import Block
from escala.analyse.language import say
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import joules
from escala.report.charts import words
from escala.report.charts.dots import Dot, dots
from escala.report.charts.layers import Part, layered
from escala.report.charts.matter import Matter, values
from escala.report.charts.plot import Plot, by_block, drawable, names_of
from escala.report.charts.style import BAR, PHASES, WIDTH, phase_colours

UNITS = (("MJ", 1e6), ("kJ", 1e3), ("J", 1.0))


def plots(matter: Matter) -> tuple[Plot, ...]:
    """Bars of joules by phase with the interval of their sum, or dots of joules to the target; a plot a block."""
    return by_block((row for row in matter.rows if energy_of(row) is not None), _of_block)


def energy_of(row: Summary) -> Interval | None:
    """What counts as the row's energy: with a target, up to there; None also where that is never."""
    return drawable(row.energy_j if row.target is None else row.to_score_energy_j)


def told(row: Summary, text: str) -> str:
    """The figure in words, marked where it is a guess."""
    return say(words.ESTIMATED, value=text) if "estimated" in row.energy_how.values() else text


def unit_of(most: float) -> tuple[str, float]:
    """The unit that suits joules up to `most`, and what one of it is."""
    return next((unit for unit in UNITS if most >= unit[1]), UNITS[-1])


def _of_block(block: Block) -> Part:
    found = [(row, one) for row in block if (one := energy_of(row)) is not None]
    unit, one_unit = unit_of(max(one.median for _, one in found))
    names = names_of(block)
    if any(row.target is not None for row in block):
        made = [Dot(names[id(row)], _in(one, one_unit), told(row, joules(one))) for row, one in found]
        return dots(made, say(words.ENERGY_TO_SCORE, unit=unit), say(words.ENERGY))
    return _bars(found, names, unit, one_unit)


def _in(found: Interval, one: float) -> Interval:
    return Interval(found.median / one, found.low / one, found.high / one, tuple(v / one for v in found.values))


def _bars(found: list[tuple[Summary, Interval]], names: dict[int, str], unit: str, one: float) -> Part:
    phases = [
        {
            "row": names[id(row)],
            "phase": say(words.PHASE[phase]),
            "order": order,
            "energy": part.median / one,
            "told": told(row, joules(Interval(part.median, part.median, part.median, (part.median,)))),
        }
        for row, _ in found
        for order, phase in enumerate(PHASES)
        if (part := row.energy_phase_j.get(phase)) is not None
    ]
    whole = [
        {"row": names[id(row)], "low": all_j.low / one, "high": all_j.high / one, "told": told(row, joules(all_j))}
        for row, all_j in found
    ]
    rows = alt.Y("row:N", title=None, sort=None)
    axis = say(words.ENERGY_AXIS, unit=unit)
    tips = [alt.Tooltip("row:N", title=say(words.ROW)), alt.Tooltip("told:N", title=say(words.ENERGY))]
    bars = (
        alt.Chart(values(phases))
        .mark_bar(height={"band": 0.7})
        .encode(
            x=alt.X("energy:Q", title=axis, stack="zero"),
            y=rows,
            color=alt.Color("phase:N", title=say(words.PHASE_TITLE), scale=phase_colours()),
            order=alt.Order("order:Q"),
            tooltip=[tips[0], alt.Tooltip("phase:N", title=say(words.PHASE_TITLE)), tips[1]],
        )
    )
    rule = (
        alt.Chart(values(whole))
        .mark_rule(strokeWidth=2)
        .encode(x=alt.X("low:Q", title=axis), x2=alt.X2("high:Q"), y=rows, tooltip=tips)
    )
    return layered([bars, rule], width=WIDTH, height=BAR * len(whole))
