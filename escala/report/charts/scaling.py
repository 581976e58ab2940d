"""Speed-up over the number of devices, with the serial share that Amdahl's law gives it."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from escala.analyse.compare import blocks, headings
from escala.analyse.language import say
from escala.analyse.row import Interval
from escala.analyse.scaling import Family, families, speedup_at
from escala.analyse.wording import number, percent, speedup_text
from escala.report.charts import words
from escala.report.charts.layers import Part, layered
from escala.report.charts.matter import Matter, values
from escala.report.charts.plot import Plot, names_of
from escala.report.charts.style import COLOURS, QUIET, WIDTH

_STEPS = 40
"""Points of a fitted line."""


def plots(matter: Matter) -> tuple[Plot, ...]:
    """Points with intervals and a fitted line a kind of row; a plot a block with a kind of several counts."""
    found = blocks(matter.rows)
    return tuple(
        Plot(heading, tuple(point.row for family in kinds for point in family.points), _drawn(kinds), _notes(kinds))
        for block, heading in zip(found, headings(found), strict=True)
        if (kinds := families(block))
    )


def _notes(found: Sequence[Family]) -> tuple[str, ...]:
    return tuple(map(_told, found))


def _told(family: Family) -> str:
    if family.serial is None:
        return say(words.NO_SERIAL[family.no_fit or "slower"], kind=family.kind)
    return say(words.SERIAL, kind=family.kind, share=_share(family.serial))


def _share(found: Interval) -> str:
    if found.low == found.high:
        return percent(found.median)
    return f"{percent(found.median)} [{number(100 * found.low)}, {number(100 * found.high)}]"


def _drawn(found: Sequence[Family]) -> Part:
    most = max(point.ways for family in found for point in family.points)
    least = min(point.ways for family in found for point in family.points)
    names = names_of(point.row for family in found for point in family.points)
    points = [
        {
            "kind": family.kind,
            "row": names[id(point.row)],
            "ways": point.ways,
            "speedup": point.speedup.median,
            "low": point.speedup.low,
            "high": point.speedup.high,
            "told": speedup_text(point.speedup),
        }
        for family in found
        for point in family.points
    ]
    grid = [least + (most - least) * step / _STEPS for step in range(_STEPS + 1)]
    fitted = [
        {"kind": family.kind, "ways": ways, "speedup": speedup_at(ways / family.points[0].ways, family.serial.median)}
        for family in found
        if family.serial is not None
        for ways in grid
        if ways >= family.points[0].ways
    ]
    ideal = [{"ways": ways, "speedup": ways / least} for ways in (least, most)]
    kinds = [family.kind for family in found]
    colours = alt.Scale(domain=kinds, range=[COLOURS[place % len(COLOURS)] for place in range(len(kinds))])
    colour = alt.Color("kind:N", title=say(words.KIND), scale=colours)
    counts = sorted({point.ways for family in found for point in family.points})
    x = alt.X(
        "ways:Q", title=say(words.DEVICES), axis=alt.Axis(values=counts, format="d"), scale=alt.Scale(padding=12)
    )
    y = alt.Y("speedup:Q", title=say(words.SPEEDUP), scale=alt.Scale(zero=True))
    base = alt.Chart(values(points)).encode(x=x, color=colour)
    tips = [
        alt.Tooltip("row:N", title=say(words.ROW)),
        alt.Tooltip("ways:Q", title=say(words.DEVICES)),
        alt.Tooltip("told:N", title=say(words.SPEEDUP)),
    ]
    layers = [alt.Chart(values(ideal)).mark_line(color=QUIET, strokeWidth=1.5).encode(x=x, y=y)]
    if fitted:
        line = alt.Chart(values(fitted)).mark_line(strokeWidth=1.5, strokeDash=[5, 3])
        layers.append(line.encode(x=x, y=y, color=colour))
    layers += [
        base.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q", title=say(words.SPEEDUP)), y2=alt.Y2("high:Q")),
        base.mark_point(filled=True, size=60, opacity=1).encode(y=y, tooltip=tips),
    ]
    return layered(layers, width=WIDTH, height=240)
