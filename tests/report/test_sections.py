"""What stands below the tables, in every format."""

from __future__ import annotations

import csv
import io
import json

import pytest
import recorded as made
from rich.cells import cell_len
from shown import HOSTILE, shown

from escala.analyse.annex import Annex
from escala.analyse.epochs import by_epoch
from escala.analyse.published import published
from escala.report import WRITERS, csv_text, terminal
from escala.report.sections import sections
from escala.terms.published import PublishedSpec, SourceSpec
from escala.terms.record import Record

ENTRIES = (
    PublishedSpec("ddp x2", "speed-up", 1.79, "x", note="validation was not shared"),
    PublishedSpec("ddp x2", "score", "about 80 %", "%"),
    PublishedSpec("ddp x4", "speed-up", 3.5, "x", against="single"),
    PublishedSpec("single", "energy", 1.17e6, "J"),
)
SOURCE = SourceSpec("A thesis", "2 x Tesla K20m", "masks of fish", 100)


def annex(records: list[Record], *, epochs: bool = False, entries: tuple[PublishedSpec, ...] = ENTRIES) -> Annex:
    summaries, _ = shown(records)
    found = published(entries, SOURCE, summaries, quick=False)
    return Annex(found, by_epoch(records, summaries) if epochs else ())


def test_nothing_to_show_is_no_section() -> None:
    assert sections(Annex()) == ()


def test_published_beside_measured() -> None:
    (section,) = sections(annex(made.clean_campaign()))
    cells = {column.title: column.cells for column in section.columns}
    assert cells["row"] == ("ddp x2", "ddp x2", "ddp x4", "single")
    assert cells["figure"] == ("speed-up", "score", "speed-up against single", "energy")
    assert cells["published"] == ("1.79 x", "about 80 %", "3.5 x", "1.17e+06 J")
    assert cells["measured"][:1] == ("1.70 [1.68, 1.72] x",)
    assert cells["measured"][2:] == ("not measured", "not measured")
    assert section.remarks == (
        ("ddp x4", "not measured: no run of it was recorded"),
        ("single", "not measured: no power meter was asked for"),
        ("ddp x2", "validation was not shared"),
    )
    assert section.lines[0] == "Source: A thesis"
    assert section.lines[1].startswith("What differs: machine then 2 x Tesla K20m, now Xeon Test")


@pytest.mark.parametrize("writer", ["terminal", "markdown"])
def test_both_tables_for_people_hold_every_figure(writer: str) -> None:
    text = WRITERS[writer](*shown(made.clean_campaign()), annex(made.clean_campaign(), epochs=True))
    for word in ("Published beside measured", "1.79 x", "about 80 %", "not measured", "A thesis", "Epoch by epoch"):
        assert word in text
    assert text.index("Published") < text.index("Epoch by epoch")


def test_json_holds_both_and_null_where_there_is_none() -> None:
    records = made.clean_campaign()
    found = json.loads(WRITERS["json"](*shown(records), annex(records, epochs=True)))
    assert [one["value"] for one in found["published"]["figures"]] == [1.79, "about 80 %", 3.5, 1.17e6]
    assert found["published"]["figures"][0]["measured"]["median"] == pytest.approx(1.70, abs=0.01)
    assert (found["epochs"][0]["label"], found["epochs"][0]["number"]) == ("single", 1)
    assert json.loads(WRITERS["json"](*shown(records)))["published"] is None


def test_csv_goes_epoch_by_epoch_where_asked() -> None:
    records = made.swept_campaign()
    lines = list(
        csv.DictReader(io.StringIO(csv_text.write(*shown(records), annex(records, epochs=True))), strict=True)
    )
    assert len(lines) == 8
    assert (lines[0]["label"], lines[0]["number"], lines[0]["point.train.batch"]) == ("single", "1", "64")
    assert (lines[0]["train_s"], lines[0]["train_s_low"], lines[0]["loss"]) == ("1.0", "0.99", "0.5")


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    records = made.clean_campaign()
    text = terminal.write(*shown(records), annex(records, epochs=True), width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_study_is_only_shown(name: str) -> None:
    records = made.repeats(name, made.SLOW, point={"case": name})
    entries = (
        PublishedSpec(name, "score", name, case=name, note=name),
        PublishedSpec("none", "score", 1.0, note=name),
    )
    summaries, verdict = shown(records, name)
    found = Annex(
        published(entries, SourceSpec(name, name, name), summaries, quick=False), by_epoch(records, summaries)
    )
    for text in (terminal.write(summaries, verdict, found, width=100), WRITERS["json"](summaries, verdict, found)):
        assert text.replace("\n", "").isprintable()
    assert "<script" not in WRITERS["markdown"](summaries, verdict, found)
