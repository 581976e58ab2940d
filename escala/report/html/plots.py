"""Charts of the page: a place for each plot, with the doubts that concern it, and what the renderer draws there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from altair.utils.schemapi import debug_mode
from msgspec import Struct

from escala.analyse.language import say
from escala.analyse.row import Summary
from escala.analyse.verdict import Caution
from escala.analyse.wording import counted
from escala.analyse.wording import name as row_name
from escala.report.charts import CHARTS, Chart, why_absent
from escala.report.charts import words as chart_words
from escala.report.charts.matter import Matter
from escala.report.charts.plot import Plot
from escala.report.charts.style import WIDTH, look
from escala.report.html import words
from escala.report.html.element import Html, element, joined, name
from escala.terms.doubts import Doubt

MOST_PLOTS = 30
"""Plots of a chart on the page; a sweep of hundreds of points would make it too heavy to open."""
NAMED = 4
"""Rows that a doubt names, before it only counts."""
_TYPE = 12
_WIDTH = 620
"""Of a plot on a page, which is wider than a column of print."""
_LOOKS = {
    "light": look("#1b1f24", "#e3e6ea", "transparent", _TYPE),
    "dark": look("#e8eaed", "#33383f", "transparent", _TYPE),
}


class Drawn(Struct, frozen=True):
    """The part of the page that holds charts, and the data of its script as JSON."""

    html: Html
    data: str


def charts_html(matter: Matter, cautions: Sequence[Caution]) -> Drawn:
    """A section a chart that has something to show, then why the others have not."""
    marks = {caution.doubt: caution.mark for caution in cautions}
    specs: list[dict[str, Any]] = []
    parts: list[Html] = []
    absent: list[Html] = []
    # The grammar's checks take a hundred times as long as the rest; the tests run them on every chart.
    with debug_mode(False):
        for key, chart in CHARTS.items():
            if plots := chart.plots(matter):
                parts.append(_chart(key, chart, plots, marks, len(specs)))
                specs += [_spec(key, plot) for plot in plots[:MOST_PLOTS]]
            else:
                title = say(chart_words.TITLE[key])
                absent.append(element("li", f"{title}: ", name(why_absent(key, matter)), id=f"absent-{key}"))
    if absent:
        parts += [element("h3", say(words.LEFT_OUT)), element("ul", *absent)]
    told = {
        "values": say(words.VALUES),
        "failed": say(words.FAILED),
        "fields": {field: say(title) for field, title in words.FIELDS.items()},
    }
    return Drawn(joined(parts), _json({"looks": _LOOKS, "words": told, "plots": specs}))


def _chart(key: str, chart: Chart, plots: Sequence[Plot], marks: Mapping[Doubt, str], first: int) -> Html:
    shown = plots[:MOST_PLOTS]
    title = say(chart_words.TITLE[key])
    parts = [element("h3", title), element("p", say(chart_words.ABOUT[key]), class_="facts")]
    parts += [_figure(title, plot, chart, marks, first + place) for place, plot in enumerate(shown)]
    if len(shown) < len(plots):
        parts.append(element("p", say(words.MORE_PLOTS, drawn=len(shown), all=len(plots)), class_="facts"))
    return element("section", *parts, class_="chart", id=f"chart-{key}")


def _figure(title: str, plot: Plot, chart: Chart, marks: Mapping[Doubt, str], place: int) -> Html:
    parts = [element("figcaption", name(plot.heading))] if plot.heading else []
    parts.append(element("div", class_="canvas", data_plot=str(place)))
    parts += [element("p", name(note), class_="note") for note in plot.notes]
    if doubts := [_doubt(doubt, marks[doubt], plot.rows) for doubt in _present(plot.rows, chart, marks)]:
        parts.append(element("ul", *doubts, class_="doubts", aria_label=say(words.DOUBTS_HERE)))
    parts.append(element("details", element("summary", say(words.VALUES)), class_="values", data_plot=str(place)))
    label = ": ".join(filter(None, (title, plot.heading)))
    return element("figure", *parts, aria_label=label)


def _present(rows: Sequence[Summary], chart: Chart, marks: Mapping[Doubt, str]) -> list[Doubt]:
    """In the order of their letters."""
    return [doubt for doubt in marks if doubt in chart.doubts and any(doubt in row.doubts for row in rows)]


def _doubt(doubt: Doubt, mark: str, rows: Sequence[Summary]) -> Html:
    """`a unstable: single (standard deviation 12 % of the mean)`."""
    found = [row for row in rows if doubt in row.doubts]
    labels = [row_name(row) for row in found[:NAMED]]
    if len(found) > NAMED:
        labels.append(counted(len(found) - NAMED, "other"))
    link = element("a", f"{mark} {say(doubt)}", href=f"#doubt-{mark}")
    return element("li", link, ": ", name("; ".join(labels)), " (", name(found[0].doubts[doubt]), ")")


def _spec(key: str, plot: Plot) -> dict[str, Any]:
    spec: dict[str, Any] = _compact(plot.part)
    if spec.get("width") == WIDTH:
        spec["width"] = _WIDTH
    spec["description"] = ": ".join(filter(None, (say(chart_words.TITLE[key]), plot.heading)))
    return spec


def _compact(part: Any, key: str = "") -> Any:
    """The same with rows of data as lists under one line of field names: half the bytes."""
    if isinstance(part, dict):
        if key == "datasets":
            return {name: _rows(rows) for name, rows in part.items()}
        if key == "data" and "values" in part:
            return {"values": _rows(part["values"])}
        return {name: _compact(one, name) for name, one in part.items()}
    return [_compact(one) for one in part] if isinstance(part, list) else part


def _rows(rows: Sequence[Mapping[str, object]]) -> dict[str, list[Any]]:
    fields = list(dict.fromkeys(field for row in rows for field in row))
    return {"fields": fields, "rows": [[row.get(field) for field in fields] for row in rows]}


def _json(value: object) -> str:
    """JSON that cannot end the element that it stands in."""
    text = msgspec.json.encode(value).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
