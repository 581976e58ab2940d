"""Charts: what they hold, that they are drawn without a browser, and that no name in them is obeyed."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import altair as alt
import energetic as joules
import jsonschema
import numpy as np
import pytest
import recorded as made
import shown as cases
from msgspec.structs import replace

from escala.analyse.attribute import Attribution, Bar, Factor
from escala.analyse.epochs import by_epoch
from escala.analyse.published import published
from escala.analyse.row import Interval
from escala.analyse.summary import summarise
from escala.report.charts import CHARTS, why_absent, words
from escala.report.charts.matter import Line, Matter, Shade, Trace
from escala.report.charts.power import MOST_OF_A_LINE
from escala.report.charts.style import styled
from escala.report.charts.traces import missing_traces, traces_of
from escala.report.figures import FORMS, figures
from escala.store.trace import About, Window, write_trace
from escala.terms.errors import EscalaError
from escala.terms.published import PublishedSpec, SourceSpec
from escala.terms.record import Epoch, Record

TRACE = Trace(
    "single",
    "",
    (Line("cuda:0", (0.0, 0.5, 1.0), (70.0, 300.0, 310.0)), Line("package-0", (0.0, 1.0), (40.0, 90.0))),
    (Shade("train", 0.2, 0.8), Shade("validation", 0.8, 0.9)),
)

TAKEN = Attribution(
    {},
    "single",
    "ddp x2",
    ("devices", "precision"),
    orders=2,
    possible=2,
    total=Interval(2.4, 2.3, 2.5, (2.4,)),
    factors=(
        Factor("devices", ("ways",), Interval(3.0, 2.9, 3.1, (3.0,)), Interval(1.25, 1.2, 1.3, (1.25,))),
        Factor("precision", ("precision",), Interval(0.8, 0.7, 0.9, (0.8,)), Interval(-0.25, -0.3, -0.2, (-0.25,))),
    ),
    waterfall=(Bar("devices", 1.0, 3.0), Bar("precision", 3.0, 2.4)),
)
"""A speed-up that was taken apart."""


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
    plots = CHARTS[name].plots(found)
    assert plots
    return [row for plot in plots for row in _inline(plot.part)]


def _inline(spec: Any) -> list[dict[str, Any]]:
    if isinstance(spec, dict):
        own = spec.get("data", {}).get("values", [])
        named = [row for rows in spec.get("datasets", {}).values() for row in rows]
        return [*own, *named, *(row for key, part in spec.items() if key != "datasets" for row in _inline(part))]
    return [row for part in spec for row in _inline(part)] if isinstance(spec, list) else []


def energetic() -> Matter:
    """Every chart has something to show: energy, a trace, curves, two counts of devices, a published figure."""
    records = learned(joules.pair_campaign())
    rows = summarise(records, "single")
    entries = [
        PublishedSpec("ddp x2", "speed-up", 1.8, "x"),
        PublishedSpec("ddp x2", "score", "about 80 %", "%"),
        PublishedSpec("ddp x4", "speed-up", 3.5, "x"),
    ]
    beside = published(entries, SourceSpec("A thesis"), rows, quick=False)
    return Matter(rows, by_epoch(records, rows), (TRACE,), beside, (TAKEN,))


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
    assert (row["value"], row["low"], row["high"], row["ideal"]) == (
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
    bare = matter(
        [replace(record, outcome="failed", phases=None, score=None, memory_bytes={}) for record in campaign()]
    )
    assert [name for name, chart in CHARTS.items() if chart.plots(bare)] == []
    assert list(figures(bare)) == []
    assert all(why_absent(name, bare).endswith(".") for name in CHARTS)


def test_a_chart_of_energy_says_why_there_is_none() -> None:
    found = matter(campaign())
    assert why_absent("energy", found) == "No row has energy. Energy was not measured: no power meter was asked for."
    assert why_absent("scaling", found) == words.ABSENT["scaling"]


def test_each_chart_has_its_words() -> None:
    assert set(words.TITLE) == set(words.ABOUT) == set(words.ABSENT) == set(CHARTS)


@cache
def grammar() -> Any:
    schema = json.loads((Path(alt.__file__).parent / "vegalite/v6/schema/vega-lite-schema.json").read_text())
    return jsonschema.Draft7Validator(schema)


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_keeps_to_the_grammar(name: str) -> None:
    plots = CHARTS[name].plots(energetic())
    assert plots
    for plot in plots:
        grammar().validate(plot.part)
    grammar().validate(styled(plots))


def test_the_grammar_is_one_that_refuses() -> None:
    (plot,) = CHARTS["phases"].plots(energetic())
    with pytest.raises(jsonschema.ValidationError):
        grammar().validate(plot.part | {"mark": "no such mark"})


def test_efficiency_stands_beside_its_ideal() -> None:
    found = matter(campaign())
    rows = data_of("efficiency", found)
    assert {"ideal": 1.0} in rows
    assert found.rows[1].efficiency_total is not None
    assert [row["value"] for row in rows if row.get("row") == "ddp x2"] == [found.rows[1].efficiency_total.median]


def test_scores_over_time_stand_where_their_epoch_ended() -> None:
    rows = data_of("score-time", matter(campaign()))
    assert [row["seconds"] for row in rows if row["row"] == "single"] == [1.1, 2.2, 3.3]
    untimed = [
        replace(record, epochs=tuple(replace(epoch, train_s=0.0) for epoch in record.epochs)) for record in campaign()
    ]
    assert CHARTS["score-time"].plots(matter(untimed)) == ()
    assert CHARTS["score"].plots(matter(untimed))


def test_curves_of_many_rows_keep_their_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("escala.report.charts.curves.MOST_POINTS", 10)
    rows = data_of("score", matter(learned(campaign(), 100)))
    epochs = [row["epoch"] for row in rows if row["row"] == "single"]
    assert (len(epochs), epochs[0], epochs[-1]) == (5, 1, 100)


@pytest.mark.parametrize("epochs", [2, 3, 10, 11, 100])
def test_marks_stand_at_whole_epochs(epochs: int) -> None:
    (plot,) = CHARTS["score"].plots(matter(learned(campaign(), epochs)))
    marks = plot.part["layer"][0]["encoding"]["x"]["axis"]["values"]
    assert 2 <= len(marks) <= 10
    assert all(isinstance(mark, int) and 1 <= mark <= epochs for mark in marks)


def test_rows_whose_names_are_shortened_to_the_same_stay_apart() -> None:
    labels = [f"{'a' * 40}{place}{'b' * 40}" for place in range(3)]
    records = learned([one for label in labels for one in made.repeats(label, made.FAST)] + campaign())
    for name in ("phases", "speed-up", "memory", "cost-score"):
        assert len({row["row"] for row in data_of(name, matter(records))}) == 5, name
    assert len({row["row"] for row in data_of("score", matter(records))}) == 5


def test_memory_is_told_by_device_also_of_what_did_not_fit() -> None:
    full = replace(made.make("wide", outcome="out of memory", reason="full"), memory_bytes={"cuda:0": 3 * 2**30})
    rows = data_of("memory", matter([*campaign(), full]))
    assert {(row["row"], row["device"], row["told"]) for row in rows} == {
        ("single", "cpu", "300 MiB"),
        ("ddp x2", "cpu", "300 MiB"),
        ("wide", "cuda:0", "3.00 GiB"),
    }


def test_memory_that_was_expected_stands_beside_what_was_measured() -> None:
    told = [replace(record, memory_estimate_bytes={"cpu": 2**28, "cuda:9": 1}) for record in campaign()]
    rows = data_of("memory", matter(told))
    assert [row["told"] for row in rows if row["row"] == "single"] == ["300 MiB", "256 MiB"]
    assert "cuda:9" not in {row["device"] for row in rows}, "what was not used has no peak to stand beside"


def test_energy_by_phase_adds_up_to_the_whole() -> None:
    found = energetic()
    rows = data_of("energy", found)
    whole = {row.label: row.energy_j.median for row in found.rows if row.energy_j}
    assert whole == {"single": pytest.approx(230.0), "ddp x2": pytest.approx(253.0)}
    for label, total in whole.items():
        assert sum(row["energy"] for row in rows if row["row"] == label and "phase" in row) == pytest.approx(total)
    assert [row["told"] for row in data_of("edp", found)] == [
        "529 [529, 529] J s",
        "291 [291, 291] J s, 0.55x [0.55, 0.55] of the baseline's",
    ]


def test_the_plane_of_time_and_energy_knows_its_front() -> None:
    rows = data_of("cost-energy", energetic())
    # One is faster, the other takes less: no row beats either.
    assert {row["row"]: row["front"] for row in rows} == {"single": "yes", "ddp x2": "yes"}
    worse = [
        replace(record, score=replace(record.score, value=0.5)) if record.score else record
        for record in made.repeats("ddp x2", made.FAST, ways=2, batch=128)
    ]
    rows = data_of("cost-score", matter([*campaign()[:5], *worse]))
    # It did other work, so it is shown and on no front.
    assert {row["row"]: row["front"] for row in rows} == {"single": "yes", "ddp x2": "no"}


def test_scaling_tells_its_serial_share() -> None:
    (plot,) = CHARTS["scaling"].plots(energetic())
    # 2.3 s on one board and 1.15 s on two.
    assert plot.notes == ("ddp: serial share 0 %",)
    (plot,) = CHARTS["scaling"].plots(matter(campaign()))
    assert plot.notes == ("ddp: seats share one processor, so no serial share is fitted",)


def test_published_figures_that_are_numbers_stand_beside_those_measured() -> None:
    found = energetic()
    rows = data_of("published", found)
    assert [(row["row"], row["which"], row["value"]) for row in rows] == [
        ("ddp x2", "published", 1.8),
        ("ddp x2", "measured", pytest.approx(2.0)),
    ]


def test_a_long_trace_keeps_its_peaks() -> None:
    seconds = tuple(place / 10 for place in range(50_000))
    watts = tuple(1000.0 if place == 31_234 else 100.0 + place % 7 for place in range(50_000))
    long = replace(TRACE, lines=(Line("cuda:0", seconds, watts),))
    rows = [row for row in data_of("power", matter(campaign(), long)) if "watts" in row]
    assert len(rows) <= MOST_OF_A_LINE
    assert max(row["watts"] for row in rows) == 1000.0
    assert [row["seconds"] for row in rows] == sorted(row["seconds"] for row in rows)


def test_a_target_that_was_never_reached_has_no_place_on_an_axis() -> None:
    records = [*made.aimed("single", (4, 4, 5, 4, 5)), *made.aimed("ddp x2", (None,) * 5, ways=2)]
    found = matter(records)
    assert CHARTS["speed-up"].plots(found) == ()
    for name, chart in CHARTS.items():
        for plot in chart.plots(found):
            assert "Infinity" not in json.dumps(plot.part), name


def test_every_form_is_drawn() -> None:
    found = dict(figures(energetic()))
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
    copied = [replace(record, power_trace="gone") for record in campaign() if not record.trial.repeat]
    assert traces_of(tmp_path, [*copied, *records]) == found
    assert missing_traces(tmp_path, [*copied, *records]) == len(copied)
    (tmp_path / "one").write_bytes(b"cut")
    with pytest.raises(EscalaError, match="no power trace"):
        traces_of(tmp_path, records)


def test_a_waterfall_leads_from_the_baseline_to_the_target() -> None:
    nothing = Attribution({}, "single", "ddp x2", (), 0, 0, reason="the two rows are alike")
    found = replace(matter(campaign()), attributions=(nothing, TAKEN))
    start, *rows = data_of("waterfall", found)
    assert start == {"begin": 1.0}
    assert [(row["factor"], row["begin"], row["end"], row["kind"]) for row in rows] == [
        ("devices", 1.0, 3.0, "+"),
        ("precision", 3.0, 2.4, "-"),
        ("all together", 1.0, 2.4, "="),
    ]
    assert rows[0]["told"].endswith(", 125 %")
    (plot,) = CHARTS["waterfall"].plots(found)
    assert [row.label for row in plot.rows] == ["single", "ddp x2"]
    assert not CHARTS["waterfall"].plots(matter(campaign()))
