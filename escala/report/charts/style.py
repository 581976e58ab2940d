"""How charts look: sizes and type for the column of a thesis, colours that colour-blind readers tell apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import altair as alt

WIDTH: Final = 420
"""Of the plot itself, in points of 1/72 inch when printed."""
BAR: Final = 20
"""Height of a row of bars."""
COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#8C6D00", "#000000")
"""Okabe and Ito's set, its yellow darkened so that it shows on white."""
QUIET: Final = "#8a8a8a"
PHASES: Final = {"train": COLOURS[0], "validation": COLOURS[1], "test": COLOURS[2]}
_CONFIG: Final[dict[str, Any]] = {
    "font": "Helvetica, Arial, sans-serif",
    "background": "white",
    "view": {"stroke": None},
    "axis": {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "labelLimit": 260, "grid": False},
    "axisX": {"grid": True, "gridColor": "#e6e6e6"},
    "legend": {"labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal", "labelLimit": 260},
    "title": {"fontSize": 12, "anchor": "start", "fontWeight": "bold"},
    "header": {"labelFontSize": 11, "titleFontSize": 11},
}


Part = alt.Chart | alt.LayerChart | alt.FacetChart
"""A plot of its own."""


def styled(parts: Sequence[Part]) -> alt.VConcatChart:
    """The parts below each other, in the one look of all charts."""
    whole: alt.VConcatChart = (
        alt.vconcat(*parts, spacing=24).resolve_scale(color="independent", stroke="independent").configure(**_CONFIG)
    )
    return whole


def phase_colours() -> alt.Scale:
    """A colour a phase, the same in every chart."""
    return alt.Scale(domain=list(PHASES), range=list(PHASES.values()))
