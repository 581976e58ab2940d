"""Published figures beside those measured here."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from escala.analyse.language import say
from escala.analyse.plain import LONGEST_NAME, plain
from escala.analyse.published import Beside, figure_text
from escala.analyse.row import Summary
from escala.analyse.wording import interval_text
from escala.report.charts import words
from escala.report.charts.layers import Part, layered
from escala.report.charts.matter import Matter, values
from escala.report.charts.plot import Plot, drawable, ends, farthest
from escala.report.charts.style import BAR, COLOURS, WIDTH


def plots(matter: Matter) -> tuple[Plot, ...]:
    """Two marks a row, a plot a kind of figure and unit, of the figures that both have as a number."""
    kinds: dict[tuple[str, str], list[Beside]] = {}
    for one in matter.published.figures if matter.published is not None else ():
        if drawable(one.measured) is not None and not isinstance(one.value, str):
            kinds.setdefault((figure_text(one), one.unit), []).append(one)
    return tuple(
        Plot(", ".join(filter(None, kind)), _rows(found, matter), _drawn(found, ", ".join(filter(None, kind))))
        for kind, found in kinds.items()
    )


def _rows(found: Sequence[Beside], matter: Matter) -> tuple[Summary, ...]:
    labels = {one.row for one in found}
    return tuple(row for row in matter.rows if row.label in labels and row.outcomes.get("done"))


def _drawn(found: Sequence[Beside], axis: str) -> Part:
    measured = [one.measured for one in found if one.measured is not None]
    far = farthest(measured)
    rows: list[dict[str, object]] = []
    for one in found:
        row = ", ".join(part for part in (plain(one.row, LONGEST_NAME), one.place) if part)
        rows.append(
            {"row": row, "which": say(words.PUBLISHED), "value": one.value, "told": f"{one.value:g} {one.unit}"}
        )
        if one.measured is not None:
            told = f"{interval_text(one.measured)} {one.unit}"
            here = {"row": row, "which": say(words.MEASURED), "value": one.measured.median, "told": told}
            rows.append(here | ends(one.measured, far))
    names = alt.Y("row:N", title=None, sort=None)
    both = [say(words.PUBLISHED), say(words.MEASURED)]
    colour = alt.Color("which:N", title=None, scale=alt.Scale(domain=both, range=[COLOURS[1], COLOURS[0]]))
    shape = alt.Shape("which:N", title=None, scale=alt.Scale(domain=both, range=["diamond", "circle"]))
    base = alt.Chart(values(rows))
    tips = [
        alt.Tooltip("row:N", title=say(words.ROW)),
        alt.Tooltip("which:N", title=say(words.WHICH)),
        alt.Tooltip("told:N", title=axis),
    ]
    scale = alt.Scale(zero=True)
    layers = [
        base.transform_filter("isValid(datum.low)")
        .mark_rule(color=COLOURS[0], strokeWidth=2)
        .encode(x=alt.X("low:Q", title=axis, scale=scale), x2=alt.X2("high:Q"), y=names),
        base.mark_point(filled=True, size=60, opacity=1).encode(
            x=alt.X("value:Q", title=axis, scale=scale), y=names, color=colour, shape=shape, tooltip=tips
        ),
    ]
    return layered(layers, width=WIDTH, height=BAR * len({row["row"] for row in rows}))
