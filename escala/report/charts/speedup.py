"""How much faster each row is than the baseline, with the interval, and where as many devices should bring it."""

from __future__ import annotations

import altair as alt

from escala.analyse.compare import blocks, headings
from escala.analyse.plain import LONGEST_NAME, plain
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import speedup_text
from escala.report.charts.matter import Matter, values
from escala.report.charts.style import BAR, COLOURS, QUIET, WIDTH, Part, styled


def chart(matter: Matter) -> alt.TopLevelMixin | None:
    """A dot and its interval a row, a mark at the ideal; a plot a block with more than its baseline."""
    found = blocks(row for row in matter.rows if _speedup(row) is not None)
    parts = [
        _of_block(block, heading)
        for block, heading in zip(found, headings(found), strict=True)
        if any(not row.is_baseline for row in block)
    ]
    return styled(parts) if parts else None


def _speedup(row: Summary) -> Interval | None:
    return row.speedup_total or row.speedup_train


def _of_block(block: tuple[Summary, ...], heading: str) -> Part:
    ways = next((row.ways for row in block if row.is_baseline), 1)
    rows = [
        {
            "row": plain(row.label, LONGEST_NAME),
            "speedup": found.median,
            "low": found.low,
            "high": found.high,
            "ideal": row.ways / ways,
            "told": speedup_text(found),
        }
        for row in block
        if (found := _speedup(row)) is not None
    ]
    title = "speed-up, all phases" if any(row.speedup_total for row in block) else "speed-up, training"
    names = alt.Y("row:N", title=None, sort=None)
    told = [alt.Tooltip("row:N"), alt.Tooltip("told:N", title="speed-up"), alt.Tooltip("ideal:Q")]
    base = alt.Chart(values(rows), title=heading)
    zero = alt.Scale(zero=True, nice=True)
    return alt.layer(
        base.mark_tick(color=QUIET, thickness=2, height=BAR - 6).encode(x=alt.X("ideal:Q", scale=zero), y=names),
        base.mark_rule(color=COLOURS[0], strokeWidth=2).encode(x="low:Q", x2="high:Q", y=names),
        base.mark_point(color=COLOURS[0], filled=True, size=60, opacity=1).encode(
            x=alt.X("speedup:Q", title=f"{title} (grey: as many times as there are ways)", scale=zero),
            y=names,
            tooltip=told,
        ),
    ).properties(width=WIDTH, height=BAR * len(rows))
