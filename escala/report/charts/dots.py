"""A dot and its interval a row: the plot of every figure that is known so well and no better."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
from msgspec import Struct

from escala.analyse.language import say
from escala.analyse.row import Interval
from escala.report.charts import words
from escala.report.charts.layers import Part, layered
from escala.report.charts.matter import values
from escala.report.charts.plot import ends, farthest
from escala.report.charts.style import BAR, COLOURS, QUIET, WIDTH


class Dot(Struct, frozen=True):
    """`told` is the figure in words; `ideal` where it should be, if that is known."""

    row: str
    found: Interval
    told: str
    ideal: float | None = None


def dots(found: Sequence[Dot], axis: str, name: str, ideal_line: float | None = None) -> Part:
    """A line of the plot a dot, in the order given; `name` is the figure's, `axis` the axis' title."""
    far = farthest(dot.found for dot in found)
    rows = [
        {"row": dot.row, "value": dot.found.median, **ends(dot.found, far), "ideal": dot.ideal, "told": dot.told}
        for dot in found
    ]
    names = alt.Y("row:N", title=None, sort=None)
    scale = alt.Scale(zero=True, nice=True)
    base = alt.Chart(values(rows))
    told = [alt.Tooltip("row:N", title=say(words.ROW)), alt.Tooltip("told:N", title=name)]
    layers = []
    if ideal_line is not None:
        rule = alt.Chart(values([{"ideal": ideal_line}])).mark_rule(color=QUIET, strokeWidth=2)
        layers.append(rule.encode(x=alt.X("ideal:Q", title=axis, scale=scale)))
    if any(dot.ideal is not None for dot in found):
        told.append(alt.Tooltip("ideal:Q", title=say(words.IDEAL)))
        tick = base.mark_tick(color=QUIET, thickness=2, height=BAR - 6)
        layers.append(tick.encode(x=alt.X("ideal:Q", title=axis, scale=scale), y=names))
    layers += [
        base.mark_rule(color=COLOURS[0], strokeWidth=2).encode(
            x=alt.X("low:Q", title=axis, scale=scale), x2=alt.X2("high:Q"), y=names
        ),
        base.mark_point(color=COLOURS[0], filled=True, size=60, opacity=1).encode(
            x=alt.X("value:Q", title=axis, scale=scale), y=names, tooltip=told
        ),
    ]
    return layered(layers, width=WIDTH, height=BAR * len(rows))
