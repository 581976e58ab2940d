"""Power over time, with the phases behind it."""

from __future__ import annotations

from collections.abc import Iterator

import altair as alt

from escala.analyse.compare import point_text
from escala.analyse.language import say
from escala.analyse.plain import LONGEST_NAME, plain
from escala.report.charts import words
from escala.report.charts.layers import Part, layered
from escala.report.charts.matter import Line, Matter, Trace, values
from escala.report.charts.plot import Plot
from escala.report.charts.style import COLOURS, WIDTH, phase_colours

MOST_POINTS = 20_000
"""Samples of all plots together, so that a page of many traces stays light."""
MOST_OF_A_LINE = 2_000
FEWEST_OF_A_LINE = 40


def plots(matter: Matter) -> tuple[Plot, ...]:
    """Watts of each part of the machine over one trial of each row, a plot a row."""
    lines = sum(len(trace.lines) for trace in matter.traces)
    most = min(MOST_OF_A_LINE, max(FEWEST_OF_A_LINE, MOST_POINTS // max(1, lines)))
    return tuple(
        Plot(
            ", ".join(part for part in (plain(trace.label, LONGEST_NAME), trace.point) if part),
            tuple(row for row in matter.rows if row.label == trace.label and point_text(row.point) == trace.point),
            _of_trace(trace, most),
        )
        for trace in matter.traces
        if any(line.watts for line in trace.lines)
    )


def _thinned(line: Line, most: int) -> Iterator[tuple[float, float]]:
    """At most about `most` samples, the lowest and the highest of equal stretches, so that no peak is lost."""
    samples = list(zip(line.seconds, line.watts, strict=True))
    if len(samples) <= most:
        yield from samples
        return
    stretches = most // 2
    for place in range(stretches):
        here = samples[place * len(samples) // stretches : (place + 1) * len(samples) // stretches]
        lowest, highest = min(here, key=lambda one: one[1]), max(here, key=lambda one: one[1])
        yield from sorted({lowest, highest})


def _of_trace(trace: Trace, most: int) -> Part:
    end = max(line.seconds[-1] for line in trace.lines if line.seconds)
    lines = [
        {"part": plain(line.where, LONGEST_NAME), "seconds": round(second, 3), "watts": round(watts, 1)}
        for line in trace.lines
        for second, watts in _thinned(line, most)
    ]
    shades = [
        {"phase": say(words.PHASE.get(one.phase, plain(one.phase))), "begin": one.begin, "end": one.end}
        for one in trace.shades
    ]
    names = [plain(line.where, LONGEST_NAME) for line in trace.lines]
    time = alt.Scale(domain=[0, end], nice=False)
    colours = alt.Scale(domain=names, range=[COLOURS[place % len(COLOURS)] for place in range(len(names))])
    shaded = (
        alt.Chart(values(shades))
        .mark_rect(opacity=0.25)
        .encode(
            x=alt.X("begin:Q", title=say(words.SECONDS), scale=time),
            x2=alt.X2("end:Q"),
            color=alt.Color("phase:N", title=say(words.PHASE_TITLE), scale=phase_colours()),
            tooltip=[
                alt.Tooltip("phase:N", title=say(words.PHASE_TITLE)),
                alt.Tooltip("begin:Q", title=say(words.FROM), format=".1f"),
                alt.Tooltip("end:Q", title=say(words.TO), format=".1f"),
            ],
        )
    )
    drawn = (
        alt.Chart(values(lines))
        .mark_line(strokeWidth=1.5)
        .encode(
            x=alt.X("seconds:Q", title=say(words.SECONDS), scale=time),
            y=alt.Y("watts:Q", title=say(words.WATTS)),
            stroke=alt.Stroke("part:N", title=say(words.PART), scale=colours),
            tooltip=[
                alt.Tooltip("part:N", title=say(words.PART)),
                alt.Tooltip("seconds:Q", title=say(words.SECONDS)),
                alt.Tooltip("watts:Q", title=say(words.WATTS)),
            ],
        )
    )
    return layered([shaded, drawn], width=WIDTH, height=160)
