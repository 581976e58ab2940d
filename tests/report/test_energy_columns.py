"""Energy in every form of a report: figures, reasons where there are none, and nothing that a name could do."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence

import energetic
import pytest
import recorded as made
from energetic import NO_NVML, NO_RAPL, PAIR, runs
from msgspec.structs import replace
from rich.cells import cell_len
from shown import HOSTILE, shown

from escala.analyse.annex import Annex
from escala.analyse.published import published
from escala.report import WRITERS, csv_text, terminal
from escala.report.column import Column
from escala.report.energy_columns import energy_sections
from escala.report.html.renderer import renderer
from escala.report.table import tables
from escala.terms.published import PublishedSpec, SourceSpec
from escala.terms.record import Record

TOLD = "nvml: no NVIDIA driver on this machine; rapl: permission denied on energy_uj"


def cells(columns: Sequence[Column]) -> dict[str, tuple[str, ...]]:
    return {column.title.replace("\n", " "): column.cells for column in columns}


def unmetered() -> list[Record]:
    """A campaign on a host without counters."""
    records = [*made.repeats("single", made.SLOW), *made.repeats("ddp x2", made.FAST, ways=2)]
    return [replace(one, readings=(NO_NVML, NO_RAPL)) for one in records]


def test_the_table_of_a_block_has_two_columns_of_energy() -> None:
    (table,) = tables(*shown(energetic.pair_campaign()))
    found = cells(table.columns)
    assert found["energy"] == ("230 [230, 230] J", "253 [253, 253] J")
    assert found["EDP, × baseline"] == ("1.00", "0.55 [0.55, 0.55]")
    assert table.notes == ()


def test_the_table_of_energy_has_the_rest() -> None:
    (section,) = energy_sections(shown(energetic.pair_campaign())[0])
    assert {title: column[0] for title, column in cells(section.columns).items()} == {
        "strategy": "single",
        "read": "cuda by counter",
        "runs": "5",
        "train": "200 J",
        "validation": "10.0 J",
        "test": "20.0 J",
        "with idle": "276 J",
        "idle share": "16.7 %",
        "above idle": "184 J",
        "energy, × baseline": "1.00",
        "EDP with idle, × baseline": "1.00",
        "J/sample": "0.0167",
        "samples/J": "60.0",
        "EDP, J s": "529",
        "mean W, cuda": "100",
        "mean W, cuda idle": "20.0",
        "peak W, cuda": "110",
        "peak W, cuda idle": "30.0",
    }
    assert {title: column[1] for title, column in cells(section.columns).items()}["mean W, cuda"] == "110 + 110"


def test_watts_of_many_parts_are_a_range() -> None:
    watts = {f"cuda:{place}": 100.0 + place for place in range(4)}
    records = runs("single", [2.0] * 5, watts, device="cuda", host=made.GPUS, ways=4)
    (section,) = energy_sections(shown(records)[0])
    assert cells(section.columns)["mean W, cuda"] == ("100 to 103",)
    assert cells(section.columns)["read"] == ("4 x cuda by counter",)


def test_what_is_estimated_is_marked_wherever_it_stands() -> None:
    records = runs("single", [2.0] * 5, {"cpu": 60.0}, how="estimated")
    summaries, verdict = shown([replace(one, doubts=("energy estimated",)) for one in records])
    (table,) = tables(summaries, verdict)
    assert cells(table.columns)["energy"] == ("138 [138, 138] J est.",)
    (section,) = energy_sections(summaries)
    assert cells(section.columns)["train"] == ("120 J est.",)
    assert "cpu estimated" in cells(section.columns)["read"]
    assert "a guess from rated power" in terminal.write(summaries, verdict)


def test_co2_stands_where_the_grid_was_given() -> None:
    from escala.analyse.summary import summarise

    records = runs("single", [2.0] * 5, {"package-0": 60.0})
    (section,) = energy_sections(summarise(records, "single", grid_g_per_kwh=400.0))
    assert cells(section.columns)["CO2, g estimated"] == ("0.0153",)


@pytest.mark.parametrize("writer", ["terminal", "markdown"])
def test_without_counters_each_table_for_people_says_why(writer: str) -> None:
    swept = [replace(one, readings=(NO_NVML, NO_RAPL)) for one in made.swept_campaign()]
    for records, count in ((unmetered(), 1), (swept, 2)):
        text = " ".join(WRITERS[writer](*shown(records)).replace("\\", "").split())
        assert text.count(f"Energy: not measured: {TOLD}") == count
        assert "0 J" not in text


def test_without_counters_json_has_null_and_the_reason() -> None:
    for row in json.loads(WRITERS["json"](*shown(unmetered())))["summaries"]:
        assert row["energy_reason"] == f"not measured: {TOLD}"
        assert [row[name] for name in ("energy_j", "energy_host_j", "edp", "edp_ratio", "joules_per_sample")] == [
            None
        ] * 5
        assert (row["energy_phase_j"], row["mean_w"], row["energy_runs"]) == ({}, {}, 0)


def test_without_counters_csv_has_empty_cells_and_the_reason() -> None:
    for line in csv.DictReader(io.StringIO(csv_text.write(*shown(unmetered()))), strict=True):
        assert line["energy_reason"] == f"not measured: {TOLD}"
        assert [line[name] for name in ("energy_j", "energy_j_low", "edp", "edp_ratio", "co2_g")] == [""] * 5


def test_csv_holds_raw_figures_by_phase_and_part() -> None:
    lines = list(csv.DictReader(io.StringIO(csv_text.write(*shown(energetic.pair_campaign()))), strict=True))
    single = lines[0]
    assert float(single["energy_j"]) == pytest.approx(230)
    assert float(single["edp_ratio"]) == 1
    assert [float(single[f"energy_phase_j.{phase}"]) for phase in ("train", "validation", "test")] == pytest.approx(
        [200, 10, 20]
    )
    assert float(single["mean_w.cuda:1_low"]) == pytest.approx(20)
    assert (single["energy_how"], single["energy_parts"], single["idle_parts"]) == (
        "cuda:0: counter",
        "cuda:0",
        "cuda:1",
    )


def test_a_row_that_lacks_energy_beside_one_that_has_it_says_why() -> None:
    records = runs("single", [2.0] * 5, {"cuda:0": 100.0}, device="cuda", host=PAIR)
    records += [replace(one, readings=(NO_RAPL,)) for one in made.repeats("cpu", made.SLOW, host=PAIR)]
    summaries, verdict = shown(records)
    (table,) = tables(summaries, verdict)
    assert cells(table.columns)["energy"][1] == ""
    assert table.notes == ()
    (section,) = energy_sections(summaries)
    assert cells(section.columns)["strategy"] == ("single",)
    assert section.remarks == (("cpu", "not measured: rapl: permission denied on energy_uj"),)


def test_runs_that_were_there_for_energy_are_not_missing_from_those_timed() -> None:
    timed = [replace(one, trial=replace(one.trial, role="time")) for one in made.repeats("single", made.SLOW)]
    read = runs("single", [2.5] * 3, {"package-0": 60.0}, first=5, role="energy")
    summaries, verdict = shown([*timed, *read])
    (table,) = tables(summaries, verdict)
    assert cells(table.columns)["runs"] == ("5",)
    assert table.trouble == ()
    assert cells(energy_sections(summaries)[0].columns)["runs"] == ("3",)


def test_with_a_target_joules_are_those_up_to_it() -> None:
    records = []
    for one in made.aimed("single", (4, 4, 4, None, 4)):
        assert one.to_score is not None
        told = replace(one.to_score, energy_j=50 * one.to_score.total_s, energy_reason=None)
        records.append(replace(energetic.metered(one, {"package-0": 50.0}), to_score=told))
    (table,) = tables(*shown(records))
    found = cells(table.columns)
    assert found["energy to score"] == ("220 [220, never] J",)
    assert "energy" not in found


@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    watts = {"cuda:0": 100.0, "cuda:1": 20.0, "package-0": 90.0, "dram-0": 9.0}
    idle_w = {"cuda:0": 20.0, "package-0": 40.0, "dram-0": 5.0}
    integral = {"cuda:0": 1.01}
    records = runs("single", [2.0] * 5, watts, device="cuda", host=PAIR, idle_w=idle_w, integral=integral)
    text = terminal.write(*shown(records), width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    assert "counter /" in text


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_part_and_reason_are_only_shown(name: str) -> None:
    records = runs("single", [2.0] * 5, {"package-0": 60.0, "cuda:0": 10.0})
    board = [
        replace(
            one,
            readings=tuple(replace(r, where=name, used=False) if r.where == "cuda:0" else r for r in one.readings),
        )
        for one in records
    ]
    board += [replace(one, readings=(replace(NO_RAPL, reason=name),)) for one in made.repeats("x", made.FAST)]
    for writer in WRITERS.values():
        # The renderer's own text has signs of every kind.
        text = writer(*shown(board)).replace(renderer(), "")
        assert text.replace("\n", "").isprintable()
    assert "<script" not in WRITERS["markdown"](*shown(board))


def test_published_energy_and_edp_stand_beside_the_measured() -> None:
    entries = (
        PublishedSpec("single", "energy", 1.17e6, "J"),
        PublishedSpec("single", "energy with idle", 1.28e6, "J"),
        PublishedSpec("ddp x2", "EDP", 0.56),
        PublishedSpec("ddp x2", "EDP with idle", 0.51),
        PublishedSpec("single", "EDP", 2.0, against="ddp x2"),
    )
    summaries, _ = shown(energetic.pair_campaign())
    found = published(entries, SourceSpec("a thesis"), summaries, quick=False)
    assert found is not None
    medians = [one.measured.median for one in found.figures if one.measured]
    assert medians == pytest.approx(
        [230, 276, 220 * 1.15**2 / 529, 220 * 1.15**2 / (120 * 2.3**2), 529 / (220 * 1.15**2)]
    )
    text = WRITERS["markdown"](*shown(energetic.pair_campaign()), Annex(found))
    assert "1.17e+06 J" in text


def test_published_edp_says_why_it_was_not_measured() -> None:
    summaries, _ = shown(unmetered())
    found = published((PublishedSpec("ddp x2", "EDP", 0.56),), SourceSpec("a thesis"), summaries, quick=False)
    assert found is not None
    assert found.figures[0].reason == TOLD
    single = runs("single", [2.0] * 5, {"package-0": 60.0})
    other = runs("ddp x2", [2.0] * 5, {"package-0": 60.0}, how="sampled", ways=2)
    summaries, _ = shown([*single, *other])
    found = published((PublishedSpec("ddp x2", "EDP", 0.56),), SourceSpec("a thesis"), summaries, quick=False)
    assert found is not None
    assert str(found.figures[0].reason).startswith("other meter: package by sampled power against")
