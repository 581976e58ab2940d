"""Bars of what each phase took, a bar a row."""

from __future__ import annotations

import altair as alt

from escala.analyse.compare import Block
from escala.analyse.language import say
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import seconds
from escala.report.charts import words
from escala.report.charts.layers import Part, unit
from escala.report.charts.matter import Matter, values
from escala.report.charts.plot import Plot, by_block, names_of
from escala.report.charts.style import BAR, PHASES, WIDTH, phase_colours


def plots(matter: Matter) -> tuple[Plot, ...]:
    """Median seconds of training, validation and test by row, a plot a block of comparable rows."""
    return by_block((row for row in matter.rows if row.train_s is not None), _of_block)


def _of_block(block: Block) -> Part:
    names = names_of(block)
    rows = [
        {
            "row": names[id(row)],
            "phase": say(words.PHASE[phase]),
            "order": order,
            "seconds": found.median,
            "told": seconds(found.median),
        }
        for row in block
        for order, phase in enumerate(PHASES)
        if (found := _time(row, phase)) is not None
    ]
    bars = (
        alt.Chart(values(rows))
        .mark_bar(height={"band": 0.7})
        .encode(
            x=alt.X("seconds:Q", title=say(words.MEDIAN_SECONDS), stack="zero"),
            y=alt.Y("row:N", title=None, sort=None),
            color=alt.Color("phase:N", title=say(words.PHASE_TITLE), scale=phase_colours()),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("row:N", title=say(words.ROW)),
                alt.Tooltip("phase:N", title=say(words.PHASE_TITLE)),
                alt.Tooltip("told:N", title=say(words.MEDIAN)),
            ],
        )
    )
    return unit(bars, width=WIDTH, height=BAR * len({row["row"] for row in rows}))


def _time(row: Summary, phase: str) -> Interval | None:
    return {"train": row.train_s, "validation": row.validation_s, "test": row.test_s}[phase]
