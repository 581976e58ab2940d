"""Power over time, with the phases behind it."""

from __future__ import annotations

import altair as alt

from escala.analyse.plain import LONGEST_NAME, plain
from escala.report.charts.matter import Matter, Trace, values
from escala.report.charts.style import COLOURS, WIDTH, Part, phase_colours, styled


def chart(matter: Matter) -> alt.TopLevelMixin | None:
    """Watts of each part of the machine over one trial of each row, a plot a row, on one axis of time."""
    parts = [_of_trace(trace) for trace in matter.traces if any(line.watts for line in trace.lines)]
    return styled(parts) if parts else None


def _of_trace(trace: Trace) -> Part:
    end = max(line.seconds[-1] for line in trace.lines if line.seconds)
    lines = [
        {"part": plain(line.where), "seconds": second, "watts": watts}
        for line in trace.lines
        for second, watts in zip(line.seconds, line.watts, strict=True)
    ]
    shades = [{"phase": one.phase, "begin": one.begin, "end": one.end} for one in trace.shades]
    names = [plain(line.where) for line in trace.lines]
    title = ", ".join(part for part in (plain(trace.label, LONGEST_NAME), trace.point) if part)
    time = alt.X("seconds:Q", title="seconds", scale=alt.Scale(domain=[0, end], nice=False))
    colours = alt.Scale(domain=names, range=[COLOURS[place % len(COLOURS)] for place in range(len(names))])
    shaded = (
        alt.Chart(values(shades), title=title)
        .mark_rect(opacity=0.18)
        .encode(
            x=alt.X("begin:Q", title="seconds"),
            x2="end:Q",
            color=alt.Color("phase:N", title="phase", scale=phase_colours()),
            tooltip=[alt.Tooltip("phase:N"), alt.Tooltip("begin:Q"), alt.Tooltip("end:Q")],
        )
    )
    drawn = (
        alt.Chart(values(lines))
        .mark_line(strokeWidth=1.5)
        .encode(
            x=time,
            y=alt.Y("watts:Q", title="watts"),
            stroke=alt.Stroke("part:N", title="part", scale=colours),
            tooltip=[alt.Tooltip("part:N"), alt.Tooltip("seconds:Q"), alt.Tooltip("watts:Q")],
        )
    )
    return alt.layer(shaded, drawn).properties(width=WIDTH, height=160)
