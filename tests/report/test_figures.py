"""Charts: what they hold, that they are drawn without a browser, and that no name in them is obeyed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recorded as made
import shown as cases
from msgspec.structs import replace

from escala.analyse.epochs import by_epoch
from escala.analyse.summary import summarise
from escala.report.charts import CHARTS
from escala.report.charts.matter import Line, Matter, Shade, Trace
from escala.report.charts.traces import traces_of
from escala.report.figures import FORMS, figures
from escala.store.trace import About, Window, write_trace
from escala.terms.errors import EscalaError
from escala.terms.record import Epoch, Record

TRACE = Trace(
    "single",
    "",
    (Line("cuda:0", (0.0, 0.5, 1.0), (70.0, 300.0, 310.0)), Line("package-0", (0.0, 1.0), (40.0, 90.0))),
    (Shade("train", 0.2, 0.8), Shade("validation", 0.8, 0.9)),
)


def learned(records: list[Record], epochs: int = 3) -> list[Record]:
    """The records with a curve of scores."""
    return [
        replace(
            record,
            epochs=tuple(Epoch(1.0, 2.0, f"o{place}", 0.1, 0.5 + place / 10) for place in range(epochs)),
        )
        for record in records
    ]


def matter(records: list[Record], *traces: Trace) -> Matter:
    rows = summarise(records, "single")
    return Matter(rows, by_epoch(records, rows), traces)


def campaign() -> list[Record]:
    return learned([*made.repeats("single", made.SLOW), *made.repeats("ddp x2", made.FAST, ways=2, strategy="ddp")])


def data_of(name: str, found: Matter) -> list[dict[str, Any]]:
    drawn = CHARTS[name](found)
    assert drawn is not None
    spec = drawn.to_dict()
    return [row for values in spec["datasets"].values() for row in values] if "datasets" in spec else _inline(spec)


def _inline(spec: Any) -> list[dict[str, Any]]:
    if isinstance(spec, dict):
        own = spec.get("data", {}).get("values", [])
        return [*own, *(row for part in spec.values() for row in _inline(part))]
    return [row for part in spec for row in _inline(part)] if isinstance(spec, list) else []


def test_bars_of_phases_are_the_medians_of_the_table() -> None:
    found = matter(campaign())
    rows = data_of("phases", found)
    single, ddp = found.rows
    assert single.train_s is not None
    assert ddp.train_s is not None
    assert {row["row"]: row["seconds"] for row in rows if row["phase"] == "train"} == {
        "single": single.train_s.median,
        "ddp x2": ddp.train_s.median,
    }


def test_speed_ups_carry_their_interval_and_the_ideal() -> None:
    found = matter(campaign())
    ddp = found.rows[1]
    assert ddp.speedup_total is not None
    (row,) = [row for row in data_of("speed-up", found) if row["row"] == "ddp x2"]
    assert (row["speedup"], row["low"], row["high"], row["ideal"]) == (
        ddp.speedup_total.median,
        ddp.speedup_total.low,
        ddp.speedup_total.high,
        2.0,
    )


def test_scores_by_epoch_in_one_plot_or_each_in_its_own() -> None:
    rows = data_of("score", matter(campaign()))
    assert [row["epoch"] for row in rows if row["row"] == "single"] == [1, 2, 3]
    many = [*campaign(), *(one for place in range(9) for one in learned(made.repeats(f"row {place}", made.FAST)))]
    rows = data_of("score", matter(many))
    # The baseline is drawn beside every other row.
    assert len({row["panel"] for row in rows}) == 11
    assert {row["row"] for row in rows if not row["own"]} == {"single"}


def test_power_over_time_has_its_phases_behind_it() -> None:
    rows = data_of("power", matter(campaign(), TRACE))
    assert [row["watts"] for row in rows if row.get("part") == "cuda:0"] == [70.0, 300.0, 310.0]
    assert [row["phase"] for row in rows if "phase" in row] == ["train", "validation"]


def test_what_has_nothing_to_show_is_no_chart() -> None:
    bare = matter([replace(record, outcome="failed", phases=None, score=None) for record in campaign()])
    assert [name for name, draw in CHARTS.items() if draw(bare) is not None] == []
    assert list(figures(bare)) == []


def test_every_form_is_drawn() -> None:
    found = dict(figures(matter(campaign(), TRACE)))
    assert set(found) == {f"{name}.{form}" for name in CHARTS for form in FORMS}
    begins = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}
    assert all(content.startswith(begins[name.rpartition(".")[2]]) for name, content in found.items())


def test_hostile_names_are_text() -> None:
    records = learned(cases.hostile())
    for name, content in figures(matter(records, replace(TRACE, label="<script>alert(1)</script>")), ("svg",)):
        text = content.decode()
        assert "<script" not in text, name
        assert not re.search(r"<(a|image|foreignObject|link|style)\b", text), name
        assert not re.search(r"(xlink:)?href\s*=\s*\"(?!#)", text), name
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_traces_are_those_of_the_first_run_of_each_row(tmp_path: Path) -> None:
    arrays = {
        "seconds": np.array([0.0, 0.5, 1.0]),
        "package-0/watts": np.array([np.nan, 90.0, 95.0], dtype=np.float32),
        "package-0/joules": np.zeros(3, dtype=np.float32),
    }
    write_trace(tmp_path / "one", About("x", (Window("train", 1, 0.1, 0.9),), {}), arrays)
    records = [replace(record, power_trace="one" if record.trial.repeat else None) for record in campaign()]
    found = traces_of(tmp_path, records)
    assert [trace.label for trace in found] == ["single", "ddp x2"]
    assert found[0].lines == (Line("package-0", (0.5, 1.0), (90.0, 95.0)),)
    assert found[0].shades == (Shade("train", 0.1, 0.9),)
    (tmp_path / "one").write_bytes(b"cut")
    with pytest.raises(EscalaError, match="no power trace"):
        traces_of(tmp_path, records)
