"""The score in validation over epochs, and over the time that they took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
from msgspec import Struct

from escala.analyse.compare import Block, point_text
from escala.analyse.epochs import EpochRow
from escala.analyse.language import marked, say
from escala.analyse.row import Summary
from escala.analyse.wording import score_name
from escala.report.charts import words
from escala.report.charts.layers import Part, layered
from escala.report.charts.matter import Matter, values
from escala.report.charts.plot import Plot, by_block, names_of
from escala.report.charts.style import COLOURS, QUIET, WIDTH

SMALL = 120
"""Width of a plot of its own, where there are more rows than colours."""
COLUMNS = 4
TICKS, SMALL_TICKS = 10, 5
"""The most marks along a plot, and along a small one."""
MOST_POINTS = 12_000
"""Points of all curves of a chart together; of more, each curve keeps some, its first and last among them."""

Points = list[dict[str, Any]]


class _Over(Struct, frozen=True):
    """What the curves are over: the field of a point, its title, and whether it is counted."""

    field: str
    title: str
    counted: bool


_EPOCHS = _Over("epoch", marked(words.EPOCH), True)
_TIME = _Over("seconds", marked(words.EPOCH_SECONDS), False)


def by_epoch(matter: Matter) -> tuple[Plot, ...]:
    """Median score by epoch with the interval over runs: all rows of a block in one plot.

    Where there are more rows than colours, each stands in a plot of its own beside the baseline in grey.
    """
    return _plots(matter, _EPOCHS)


def over_time(matter: Matter) -> tuple[Plot, ...]:
    """The same over the median seconds of training and validation up to the end of each epoch."""
    return _plots(matter, _TIME)


def _plots(matter: Matter, over: _Over) -> tuple[Plot, ...]:
    of_row: dict[tuple[object, ...], list[EpochRow]] = {}
    for one in matter.epochs:
        of_row.setdefault((one.label, point_text(one.point), one.likeness), []).append(one)
    most = max(2, MOST_POINTS // max(1, len(of_row)))

    def draw(block: Block) -> Part | None:
        names = names_of(block)
        points = {id(row): _thinned(_points(names[id(row)], of_row.get(_key(row), []), over), most) for row in block}
        known = [row for row in block if len(points[id(row)]) > 1]
        if not known:
            return None
        return (_together if len(known) <= len(COLOURS) else _apart)(known, names, points, over)

    return by_block((row for row in matter.rows if _key(row) in of_row), draw)


def _key(row: Summary) -> tuple[object, ...]:
    return row.label, point_text(row.point), row.likeness


def _points(shown: str, epochs: Sequence[EpochRow], over: _Over) -> Points:
    found: Points = []
    seconds = 0.0
    for one in epochs:
        if one.train_s is None and over.field == _TIME.field:
            return []
        seconds += (one.train_s.median if one.train_s else 0.0) + (
            one.validation_s.median if one.validation_s else 0.0
        )
        if one.score is not None:
            at = one.number if over.counted else _short(seconds)
            low, high = _short(one.score.low), _short(one.score.high)
            found.append({"row": shown, over.field: at, "score": _short(one.score.median), "low": low, "high": high})
    return found


def _short(value: float) -> float:
    # More digits than a screen has dots would only make the file longer.
    return float(f"{value:.5g}")


def _thinned(points: Points, most: int) -> Points:
    if len(points) <= most:
        return points
    places = {round(step * (len(points) - 1) / (most - 1)) for step in range(most)}
    return [points[place] for place in sorted(places)]


def _together(rows: Sequence[Summary], shown: dict[int, str], points: dict[int, Points], over: _Over) -> Part:
    data = [point for row in rows for point in points[id(row)]]
    names = [shown[id(row)] for row in rows]
    colours = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    legend = alt.Legend(symbolOpacity=1, symbolType="stroke", symbolStrokeWidth=3)
    colour = alt.Color("row:N", title=say(words.STRATEGY), sort=None, scale=colours, legend=legend)
    base = alt.Chart(values(data)).encode(x=_axis(over, data, TICKS), color=colour)
    score = _score(rows[0])
    layers = [
        base.mark_area(opacity=0.1).encode(y=alt.Y("low:Q", title=score), y2=alt.Y2("high:Q")),
        base.mark_line(strokeWidth=2, point=True).encode(
            y=alt.Y("score:Q", title=score, scale=alt.Scale(zero=False)), tooltip=_told(over)
        ),
    ]
    return layered(layers, width=WIDTH, height=240)


def _apart(rows: Sequence[Summary], shown: dict[int, str], points: dict[int, Points], over: _Over) -> Part:
    baseline = next((row for row in rows if row.is_baseline), None)
    data = []
    for place, row in enumerate(rows):
        data += [{**point, "panel": shown[id(row)], "place": place, "own": True} for point in points[id(row)]]
        if baseline is not None and row is not baseline:
            beside = points[id(baseline)]
            data += [{**point, "panel": shown[id(row)], "place": place, "own": False} for point in beside]
    base = alt.Chart().encode(x=_axis(over, data, SMALL_TICKS, titled=False))
    own, other = base.transform_filter("datum.own"), base.transform_filter("!datum.own")
    y = alt.Y("score:Q", title=None, scale=alt.Scale(zero=False))
    layers = [
        other.mark_line(color=QUIET, strokeWidth=1.5).encode(y=y),
        own.mark_area(color=COLOURS[0], opacity=0.2).encode(y=alt.Y("low:Q", title=None), y2=alt.Y2("high:Q")),
        own.mark_line(color=COLOURS[0], strokeWidth=2, point={"size": 12}).encode(y=y, tooltip=_told(over)),
    ]
    title = say(words.PANELS, score=_score(rows[0]), axis=say(over.title))
    if baseline is not None:
        title = say(words.GREY, title=title, row=shown[id(baseline)])
    panel = {"field": "panel", "type": "nominal", "title": title, "sort": {"field": "place"}}
    inner = layered(layers, width=SMALL, height=90)
    return {"data": {"values": data}, "facet": panel, "columns": COLUMNS, "spec": inner}


def _axis(over: _Over, data: Points, ticks: int, *, titled: bool = True) -> alt.X:
    axis = alt.Axis(tickCount=ticks)
    if over.counted:
        # Epochs are whole: a scale would put marks between them where there are few.
        most = max(point[over.field] for point in data)
        step = -(-most // ticks)
        axis = alt.Axis(values=list(range(step, most + 1, step)), format="d")
    return alt.X(f"{over.field}:Q", title=say(over.title) if titled else None, axis=axis)


def _score(row: Summary) -> str:
    return say(words.IN_VALIDATION, score=score_name(row.score_name))


def _told(over: _Over) -> list[alt.Tooltip]:
    return [
        alt.Tooltip("row:N", title=say(words.ROW)),
        alt.Tooltip(f"{over.field}:Q", title=say(over.title)),
        alt.Tooltip("score:Q", title=say(words.SCORE), format=".4f"),
    ]
