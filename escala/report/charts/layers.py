"""Charts of the grammar as Vega-Lite's JSON, put on top of each other.

Altair's own layers copy all that they hold several times, which with hundreds of plots would be most of a report's
time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

Part = dict[str, Any]
"""A plot as Vega-Lite's JSON; it has no title and no look of its own."""
_OF_ANYWHERE = ("$schema", "config")


def unit(chart: alt.Chart, *, width: int | None = None, height: int | None = None) -> Part:
    """One chart with its data inside it; sizes are those of the plot itself."""
    with alt.data_transformers.enable(consolidate_datasets=False):
        # The whole is checked against the grammar by tests, since that takes a hundred times as long.
        spec: Part = chart.to_dict(validate=False)
    if chart.data is alt.Undefined:
        # Its data are those of what it is put into, and not the empty set that stands here.
        del spec["data"]
    sized = {"width": width, "height": height}
    return {key: value for key, value in spec.items() if key not in _OF_ANYWHERE} | {
        key: value for key, value in sized.items() if value is not None
    }


def layered(charts: Sequence[alt.Chart], *, width: int, height: int) -> Part:
    """The charts on top of each other, the first below; rows that several have stand there once."""
    names: dict[int, str] = {}
    datasets: dict[str, Any] = {}
    layers = []
    for chart in charts:
        spec = unit(chart)
        if "data" in spec:
            rows = spec["data"]["values"]
            name = names.setdefault(id(rows), f"rows{len(names)}")
            datasets[name] = rows
            spec["data"] = {"name": name}
        layers.append(spec)
    whole: Part = {"layer": layers, "width": width, "height": height}
    return whole | ({"datasets": datasets} if datasets else {})


def hoisted(parts: Sequence[Part]) -> tuple[list[Part], dict[str, Any]]:
    """The parts of a larger chart without rows of their own, and their rows by names that no two parts share."""
    datasets: dict[str, Any] = {}
    found = []
    for place, part in enumerate(parts):
        names = {name: f"plot{place}-{name}" for name in part.get("datasets", {})}
        datasets |= {names[name]: rows for name, rows in part.get("datasets", {}).items()}
        found.append({key: _renamed(value, names) for key, value in part.items() if key != "datasets"})
    return found, datasets


def _renamed(part: Any, names: Mapping[str, str]) -> Any:
    if isinstance(part, list):
        return [_renamed(one, names) for one in part]
    if not isinstance(part, dict):
        return part
    if isinstance(part.get("data"), dict) and "name" in part["data"]:
        return part | {"data": {"name": names[part["data"]["name"]]}}
    return {key: _renamed(one, names) for key, one in part.items()}
