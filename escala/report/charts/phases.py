"""Bars of what each phase took, a bar a row."""

from __future__ import annotations

import altair as alt

from escala.analyse.compare import blocks, headings
from escala.analyse.plain import LONGEST_NAME, plain
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import seconds
from escala.report.charts.matter import Matter, values
from escala.report.charts.style import BAR, PHASES, WIDTH, Part, phase_colours, styled


def chart(matter: Matter) -> alt.TopLevelMixin | None:
    """Median seconds of training, validation and test by row, a plot a block of comparable rows."""
    found = blocks(row for row in matter.rows if row.train_s is not None)
    parts = [_of_block(block, heading) for block, heading in zip(found, headings(found), strict=True)]
    return styled(parts) if parts else None


def _of_block(block: tuple[Summary, ...], heading: str) -> Part:
    rows = [
        {
            "row": plain(row.label, LONGEST_NAME),
            "phase": phase,
            "order": order,
            "seconds": found.median,
            "told": seconds(found.median),
        }
        for row in block
        for order, phase in enumerate(PHASES)
        if (found := _time(row, phase)) is not None
    ]
    bars: alt.Chart = (
        alt.Chart(values(rows), title=heading)
        .mark_bar(height={"band": 0.7})
        .encode(
            x=alt.X("seconds:Q", title="seconds, medians of the runs", stack="zero"),
            y=alt.Y("row:N", title=None, sort=None),
            color=alt.Color("phase:N", title="phase", scale=phase_colours()),
            order=alt.Order("order:Q"),
            tooltip=[alt.Tooltip("row:N"), alt.Tooltip("phase:N"), alt.Tooltip("told:N", title="median")],
        )
        .properties(width=WIDTH, height=BAR * len({row["row"] for row in rows}))
    )
    return bars


def _time(row: Summary, phase: str) -> Interval | None:
    return {"train": row.train_s, "validation": row.validation_s, "test": row.test_s}[phase]
