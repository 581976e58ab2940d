"""Cost planes: what each row took of two things at once, and which rows no other one beats."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import altair as alt
from msgspec import Struct

from escala.analyse.compare import Block
from escala.analyse.language import say
from escala.analyse.pareto import front
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import interval_text, joules, score_name, seconds
from escala.report.charts import words
from escala.report.charts.energy import energy_of, told, unit_of
from escala.report.charts.layers import Part, layered
from escala.report.charts.matter import Matter, values
from escala.report.charts.plot import Plot, by_block, drawable, ends, farthest, names_of
from escala.report.charts.style import COLOURS, QUIET, WIDTH
from escala.terms.doubts import Doubt

_HEIGHT = 260
_NEVER_ON_FRONT: tuple[Doubt, ...] = ("simulated", "other work")


class _Point(Struct, frozen=True):
    row: Summary
    x: Interval
    y: Interval
    told: str


def energy_plots(matter: Matter) -> tuple[Plot, ...]:
    """Seconds against joules; a plot a block with two rows or more that have both."""
    return by_block((row for row in matter.rows if _seconds(row) and energy_of(row)), _of_energy)


def score_plots(matter: Matter) -> tuple[Plot, ...]:
    """Seconds against the score in the test; a plot a block with two rows or more that have both."""
    return by_block((row for row in matter.rows if _seconds(row) and row.score), _of_score)


def _of_energy(block: Block) -> Part | None:
    points = _points(block, energy_of, lambda row, found: told(row, joules(found)))
    if len(points) < 2:
        return None
    unit, one = unit_of(max(point.y.median for point in points))
    points = [_scaled(point, one) for point in points]
    axis = say(words.ENERGY_TO_SCORE if block[0].target is not None else words.ENERGY_AXIS, unit=unit)
    return _plane(points, axis, say(words.ENERGY), lower=True, zero=True)


def _of_score(block: Block) -> Part | None:
    names = {row.score_name for row in block if row.score is not None}
    if len(names) != 1:
        return None
    points = _points(block, lambda row: row.score, lambda _, found: interval_text(found, 4))
    if len(points) < 2:
        return None
    title = say(words.IN_TEST, score=score_name(names.pop()))
    lower = points[0].row.score_better == "lower"
    axis = say(words.LOWER_IS_BETTER, score=title) if lower else title
    return _plane(points, axis, say(words.SCORE), lower=lower, zero=False)


def _points(
    block: Block, y_of: Callable[[Summary], Interval | None], words_of: Callable[[Summary, Interval], str]
) -> list[_Point]:
    return [
        _Point(row, x, y, words_of(row, y))
        for row in block
        if (x := _seconds(row)) is not None and (y := y_of(row)) is not None
    ]


def _seconds(row: Summary) -> Interval | None:
    return drawable(row.to_score_s) if row.target is not None else row.total_s or row.train_s


def _scaled(point: _Point, one: float) -> _Point:
    y = point.y
    inner = Interval(y.median / one, y.low / one, y.high / one, tuple(value / one for value in y.values))
    return _Point(point.row, point.x, inner, point.told)


def _time_title(rows: Sequence[Summary]) -> str:
    if any(row.target is not None for row in rows):
        return say(words.SECONDS_TO_SCORE)
    return say(words.SECONDS_ALL if any(row.total_s for row in rows) else words.SECONDS_TRAINING)


def _plane(points: Sequence[_Point], axis: str, what: str, *, lower: bool, zero: bool) -> Part:
    able = [place for place, point in enumerate(points) if not set(_NEVER_ON_FRONT) & set(point.row.doubts)]
    best = front([(points[place].x.median, points[place].y.median) for place in able], y_lower=lower)
    on_front = {able[place] for place in best}
    far_x, far_y = farthest(point.x for point in points), farthest(point.y for point in points)
    names = names_of(point.row for point in points)
    rows = []
    for place, point in enumerate(points):
        x, y = ends(point.x, far_x), ends(point.y, far_y)
        rows.append(
            {
                "row": names[id(point.row)],
                "x": point.x.median,
                "x_low": x["low"],
                "x_high": x["high"],
                "y": point.y.median,
                "y_low": y["low"],
                "y_high": y["high"],
                "time": seconds(point.x.median) if len(point.x.values) < 2 else f"{interval_text(point.x)} s",
                "told": point.told,
                "front": say(words.YES if place in on_front else words.NO),
            }
        )
    return _drawn(
        rows,
        [rows[place] for place in sorted(on_front, key=lambda one: points[one].x.median)],
        (_time_title([point.row for point in points]), axis, what),
        zero=zero,
    )


def _drawn(
    rows: list[dict[str, object]], best: list[dict[str, object]], titles: tuple[str, str, str], *, zero: bool
) -> Part:
    time, axis, what = titles
    base = alt.Chart(values(rows))
    x = alt.X("x:Q", title=time, scale=alt.Scale(zero=True))
    y = alt.Y("y:Q", title=axis, scale=alt.Scale(zero=True) if zero else alt.Scale(zero=False, padding=8))
    tips = [
        alt.Tooltip("row:N", title=say(words.ROW)),
        alt.Tooltip("time:N", title=say(words.TIME)),
        alt.Tooltip("told:N", title=what),
        alt.Tooltip("front:N", title=say(words.ON_FRONT)),
    ]
    line = alt.Chart(values(best)).mark_line(color=QUIET, strokeDash=[4, 3], interpolate="step-after")
    across, up = base.mark_rule(opacity=0.6, strokeWidth=2), base.mark_rule(opacity=0.6, strokeWidth=2)
    names = [str(row["row"]) for row in rows]
    few = len(rows) <= len(COLOURS)
    scale = alt.Scale(domain=names, range=list(COLOURS[: len(names)]))
    legend = alt.Legend(symbolOpacity=1)
    colour = (
        alt.Color("row:N", title=say(words.STRATEGY), sort=None, scale=scale, legend=legend)
        if few
        else alt.value(COLOURS[0])
    )
    layers = [
        line.encode(x=x, y=y),
        across.encode(x=alt.X("x_low:Q", title=time), x2=alt.X2("x_high:Q"), y=y, color=colour),
        up.encode(x=x, y=alt.Y("y_low:Q", title=axis), y2=alt.Y2("y_high:Q"), color=colour),
    ]
    for side, filled in ((say(words.NO), False), (say(words.YES), True)):
        # A layer of no rows would have no extent, of which the renderer warns.
        if here := [row for row in rows if row["front"] == side]:
            points = alt.Chart(values(here)).mark_point(size=70, opacity=1, filled=filled)
            layers.append(points.encode(x=x, y=y, color=colour, tooltip=tips))
    if not few:
        # There is no room for the names of all: those that are not on the front are told on hovering.
        text = alt.Chart(values(best)).mark_text(align="left", dx=8, dy=-8, fontSize=11, limit=200)
        layers.append(text.encode(x=x, y=y, text=alt.Text("row:N")))
    return layered(layers, width=WIDTH, height=_HEIGHT)
