"""From the baseline's speed to the target's, a bar a factor: where a speed-up came from."""

from __future__ import annotations

import altair as alt

from escala.analyse.attribute import Attribution, Factor, ends_text
from escala.analyse.language import say
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import number, speedup_text
from escala.report.charts import words
from escala.report.charts.layers import Part, layered
from escala.report.charts.matter import Matter, values
from escala.report.charts.plot import Plot
from escala.report.charts.style import BAR, COLOURS, QUIET, WIDTH


def plots(matter: Matter) -> tuple[Plot, ...]:
    """A plot for each speed-up that was taken apart."""
    return tuple(
        Plot(ends_text(one), _ends(one, matter), _drawn(one, one.total))
        for one in matter.attributions
        if one.total is not None and one.factors
    )


def _ends(one: Attribution, matter: Matter) -> tuple[Summary, ...]:
    labels = (one.baseline, one.target)
    return tuple(row for row in matter.rows if row.label in labels and row.point == one.point)


def _drawn(one: Attribution, total: Interval) -> Part:
    factors = {factor.name: factor for factor in one.factors}
    rows = [
        {
            "factor": say(bar.name),
            "begin": bar.begin,
            "end": bar.end,
            "kind": "+" if bar.end >= bar.begin else "-",
            "told": _told(factors[bar.name]),
            "path": f"{number(bar.begin)} -> {number(bar.end)}",
        }
        for bar in one.waterfall
    ]
    rows.append(
        {
            "factor": say(words.TOGETHER),
            "begin": 1.0,
            "end": total.median,
            "kind": "=",
            "told": speedup_text(total),
            "path": f"1 -> {number(total.median)}",
        }
    )
    axis = alt.X("begin:Q", title=say(words.OVER_BASELINE), scale=alt.Scale(type="log", nice=False))
    colour = alt.Scale(domain=["+", "-", "="], range=[COLOURS[0], COLOURS[5], QUIET])
    bars = (
        alt.Chart(values(rows))
        .mark_bar()
        .encode(
            x=axis,
            x2=alt.X2("end:Q"),
            y=alt.Y("factor:N", title=None, sort=None, scale=alt.Scale(paddingInner=0.25)),
            color=alt.Color("kind:N", scale=colour, legend=None),
            tooltip=[
                alt.Tooltip("factor:N", title=say(words.FACTOR)),
                alt.Tooltip("told:N", title=say(words.SPEEDUP)),
                alt.Tooltip("path:N", title=say(words.WATERFALL)),
            ],
        )
    )
    start = alt.Chart(values([{"begin": 1.0}])).mark_rule(color=QUIET, strokeWidth=2).encode(x=axis)
    return layered([start, bars], width=WIDTH, height=BAR * len(rows))


def _told(factor: Factor) -> str:
    found = speedup_text(factor.speedup)
    return found if factor.share is None else f"{found}, {100 * factor.share.median:.0f} %"
