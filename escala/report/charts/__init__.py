"""The table of charts: each takes what a report knows and returns a chart, or None where it has nothing to show."""

from __future__ import annotations

from collections.abc import Callable

import altair as alt

from escala.report.charts import curves, phases, power, speedup
from escala.report.charts.matter import Matter

CHARTS: dict[str, Callable[[Matter], alt.TopLevelMixin | None]] = {
    "phases": phases.chart,
    "speed-up": speedup.chart,
    "score": curves.chart,
    "power": power.chart,
}
