"""The score in validation over epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from escala.analyse.compare import blocks, headings, point_text
from escala.analyse.plain import LONGEST_NAME, plain
from escala.analyse.row import Summary
from escala.report.charts.matter import Matter, values
from escala.report.charts.style import COLOURS, QUIET, WIDTH, Part, styled

SMALL = 120
"""Width of a plot of its own, where there are more rows than colours."""
COLUMNS = 4


def chart(matter: Matter) -> alt.TopLevelMixin | None:
    """Median score by epoch with the interval over runs: all rows of a block in one plot.

    Where there are more rows than colours, each stands in a plot of its own beside the baseline in grey.
    """
    found = blocks(matter.rows)
    parts: list[Part] = []
    for block, heading in zip(found, headings(found), strict=True):
        points = {row.label: _points(row, matter) for row in block}
        known = [row for row in block if len(points[row.label]) > 1]
        if known:
            draw = _together if len(known) <= len(COLOURS) else _apart
            parts.append(draw(known, points, heading))
    return styled(parts) if parts else None


def _points(row: Summary, matter: Matter) -> list[dict[str, Any]]:
    return [
        {
            "row": plain(row.label, LONGEST_NAME),
            "epoch": one.number,
            "score": one.score.median,
            "low": one.score.low,
            "high": one.score.high,
        }
        for one in matter.epochs
        if one.label == row.label
        and point_text(one.point) == point_text(row.point)
        and one.likeness == row.likeness
        and one.score is not None
    ]


def _together(rows: Sequence[Summary], points: dict[str, list[dict[str, Any]]], heading: str) -> Part:
    data = [point for row in rows for point in points[row.label]]
    names = [plain(row.label, LONGEST_NAME) for row in rows]
    colours = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    legend = alt.Legend(symbolOpacity=1, symbolType="stroke", symbolStrokeWidth=3)
    colour = alt.Color("row:N", title="strategy", sort=None, scale=colours, legend=legend)
    base = alt.Chart(values(data), title=heading).encode(x=_epochs(), color=colour)
    score = _score(rows[0])
    return alt.layer(
        base.mark_area(opacity=0.1).encode(y=alt.Y("low:Q", title=score), y2="high:Q"),
        base.mark_line(strokeWidth=2, point=True).encode(
            y=alt.Y("score:Q", title=score, scale=alt.Scale(zero=False)), tooltip=_told()
        ),
    ).properties(width=WIDTH, height=240)


def _apart(rows: Sequence[Summary], points: dict[str, list[dict[str, Any]]], heading: str) -> Part:
    baseline = next((row for row in rows if row.is_baseline), None)
    data = []
    for place, row in enumerate(rows):
        name = plain(row.label, LONGEST_NAME)
        data += [{**point, "panel": name, "place": place, "own": True} for point in points[row.label]]
        if baseline is not None and row is not baseline:
            data += [{**point, "panel": name, "place": place, "own": False} for point in points[baseline.label]]
    base = alt.Chart().encode(x=_epochs())
    own, other = base.transform_filter("datum.own"), base.transform_filter("!datum.own")
    y = alt.Y("score:Q", title=_score(rows[0]), scale=alt.Scale(zero=False))
    layers = alt.layer(
        other.mark_line(color=QUIET, strokeWidth=1.5).encode(y=y),
        own.mark_area(color=COLOURS[0], opacity=0.2).encode(y=alt.Y("low:Q", title=_score(rows[0])), y2="high:Q"),
        own.mark_line(color=COLOURS[0], strokeWidth=2).encode(y=y, tooltip=_told()),
        data=values(data),
    ).properties(width=SMALL, height=90)
    beside = f"grey: {plain(baseline.label, LONGEST_NAME)}" if baseline is not None else ""
    panel = alt.Facet("panel:N", title=beside or None, sort=alt.SortField("place"))
    return layers.facet(facet=panel, columns=COLUMNS, title=heading)


def _epochs() -> alt.X:
    return alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1, format="d"))


def _score(row: Summary) -> str:
    return f"{plain(row.score_name or 'score', LONGEST_NAME)} in validation"


def _told() -> list[alt.Tooltip]:
    return [alt.Tooltip("row:N"), alt.Tooltip("epoch:Q"), alt.Tooltip("score:Q", format=".4f")]
