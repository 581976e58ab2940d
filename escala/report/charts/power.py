"""Power over time, with the phases behind it."""

from __future__ import annotations

import altair as alt

from escala.analyse.compare import point_text
from escala.analyse.plain import LONGEST_NAME, plain
from escala.report.charts import words
from escala.report.charts.matter import Matter, Trace, values
from escala.report.charts.plot import Part, Plot
from escala.report.charts.style import COLOURS, WIDTH, phase_colours


def plots(matter: Matter) -> tuple[Plot, ...]:
    """Watts of each part of the machine over one trial of each row, a plot a row."""
    return tuple(
        Plot(
            ", ".join(part for part in (plain(trace.label, LONGEST_NAME), trace.point) if part),
            tuple(row for row in matter.rows if row.label == trace.label and point_text(row.point) == trace.point),
            _of_trace(trace),
        )
        for trace in matter.traces
        if any(line.watts for line in trace.lines)
    )


def _of_trace(trace: Trace) -> Part:
    end = max(line.seconds[-1] for line in trace.lines if line.seconds)
    lines = [
        {"part": plain(line.where, LONGEST_NAME), "seconds": round(second, 3), "watts": round(watts, 1)}
        for line in trace.lines
        for second, watts in zip(line.seconds, line.watts, strict=True)
    ]
    shades = [
        {"phase": words.PHASE.get(one.phase, plain(one.phase)), "begin": one.begin, "end": one.end}
        for one in trace.shades
    ]
    names = [plain(line.where, LONGEST_NAME) for line in trace.lines]
    time = alt.Scale(domain=[0, end], nice=False)
    colours = alt.Scale(domain=names, range=[COLOURS[place % len(COLOURS)] for place in range(len(names))])
    shaded = (
        alt.Chart(values(shades))
        .mark_rect(opacity=0.18)
        .encode(
            x=alt.X("begin:Q", title=words.SECONDS, scale=time),
            x2="end:Q",
            color=alt.Color("phase:N", title=words.PHASE_TITLE, scale=phase_colours()),
            tooltip=[
                alt.Tooltip("phase:N", title=words.PHASE_TITLE),
                alt.Tooltip("begin:Q", title=words.FROM, format=".1f"),
                alt.Tooltip("end:Q", title=words.TO, format=".1f"),
            ],
        )
    )
    drawn = (
        alt.Chart(values(lines))
        .mark_line(strokeWidth=1.5)
        .encode(
            x=alt.X("seconds:Q", title=words.SECONDS, scale=time),
            y=alt.Y("watts:Q", title=words.WATTS),
            stroke=alt.Stroke("part:N", title=words.PART, scale=colours),
            tooltip=[
                alt.Tooltip("part:N", title=words.PART),
                alt.Tooltip("seconds:Q", title=words.SECONDS),
                alt.Tooltip("watts:Q", title=words.WATTS),
            ],
        )
    )
    return alt.layer(shaded, drawn).properties(width=WIDTH, height=160)
