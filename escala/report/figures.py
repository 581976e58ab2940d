"""Charts as files' contents, drawn without a browser."""

from __future__ import annotations

import json
from collections.abc import Iterator

import vl_convert

from escala.report.charts import CHARTS
from escala.report.charts.matter import Matter
from escala.report.charts.style import styled

FORMS = ("svg", "png", "pdf")
_DOTS = 2.0
"""PNG pixels for each of 72 to the inch: sharp in print at half the size."""


def figures(matter: Matter, forms: tuple[str, ...] = FORMS) -> Iterator[tuple[str, bytes]]:
    """File name and content of every chart that has something to show, in each form."""
    for name, chart in CHARTS.items():
        if plots := chart.plots(matter):
            spec = json.dumps(styled(plots))
            for form in forms:
                yield f"{name}.{form}", _drawn(spec, form)


def _drawn(spec: str, form: str) -> bytes:
    if form == "svg":
        text: str = vl_convert.vegalite_to_svg(spec)
        return text.encode()
    if form == "png":
        return vl_convert.vegalite_to_png(spec, scale=_DOTS)
    return vl_convert.vegalite_to_pdf(spec)
