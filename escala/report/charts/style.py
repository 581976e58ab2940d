"""How charts look: sizes and type for the column of a thesis, colours that colour-blind readers tell apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import altair as alt

from escala.analyse.language import say
from escala.report.charts.layers import Part, hoisted
from escala.report.charts.plot import Plot
from escala.report.charts.words import PHASE

WIDTH: Final = 420
"""Of the plot itself, in points of 1/72 inch when printed."""
BAR: Final = 20
"""Height of a row of bars."""
COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D00")
"""Okabe and Ito's set, its yellow darkened so that it shows on white; its black is left out, since it does not
show on a dark page."""
QUIET: Final = "#8a8a8a"
PHASES: Final = {"train": COLOURS[0], "validation": COLOURS[1], "test": COLOURS[2]}


def look(ink: str, line: str, background: str, type_size: int = 11) -> Mapping[str, Any]:
    """The one look of all charts, in these colours of text, of grid lines and of the page."""
    text = {"labelFontSize": type_size, "titleFontSize": type_size, "titleFontWeight": "normal", "labelLimit": 260}
    coloured = {"labelColor": ink, "titleColor": ink}
    return {
        "font": "Helvetica, Arial, sans-serif",
        "background": background,
        "view": {"stroke": None},
        "axis": {**text, **coloured, "grid": False, "domainColor": QUIET, "tickColor": QUIET},
        "axisX": {"grid": True, "gridColor": line, "tickCount": 8},
        "legend": {**text, **coloured},
        "title": {"fontSize": 12, "anchor": "start", "fontWeight": "bold", "color": ink},
        "header": {"labelFontSize": type_size, "titleFontSize": type_size, **coloured},
        "text": {"color": ink},
        "rule": {"color": ink},
    }


PRINT: Final = look("#000000", "#e6e6e6", "white")


def styled(plots: Sequence[Plot]) -> Part:
    """The plots below each other under their headings, as they are printed."""
    parts, datasets = hoisted(
        [plot.part | ({"title": plot.heading} if plot.heading else {}) for plot in plots],
    )
    apart = dict.fromkeys(("color", "stroke", "shape"), "independent")
    return {"vconcat": parts, "spacing": 24, "resolve": {"scale": apart}, "config": PRINT, "datasets": datasets}


def phase_colours() -> alt.Scale:
    """A colour a phase, the same in every chart."""
    return alt.Scale(domain=[say(PHASE[phase]) for phase in PHASES], range=list(PHASES.values()))
