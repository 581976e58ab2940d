"""The report as CSV: raw figures, and nothing that a spreadsheet would run."""

from __future__ import annotations

import csv
import io
import re
import typing

import pytest
import recorded as made
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from shown import CAMPAIGNS, HOSTILE, shown

from escala.analyse.plain import plain
from escala.analyse.row import Interval, Summary
from escala.report.csv_text import write
from escala.report.flat import INTERVALS


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text), strict=True))


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_one_line_a_summary(name: str) -> None:
    summaries, verdict = shown(CAMPAIGNS[name]())
    found = rows_of(write(summaries, verdict))
    assert len(found) == len(summaries)
    assert all(None not in row and None not in row.values() for row in found)


def test_nothing_recorded_is_a_header() -> None:
    text = write(*shown([]))
    assert text.startswith("label,workload,")
    assert text.count("\n") == 1


def test_the_interval_fields_are_named_in_full() -> None:
    hints = typing.get_type_hints(Summary)
    assert {name for name, hint in hints.items() if hint == Interval | None} == set(INTERVALS)


def test_figures_are_not_rounded() -> None:
    summaries, verdict = shown(made.clean_campaign())
    for row, line in zip(summaries, rows_of(write(summaries, verdict)), strict=True):
        for name in INTERVALS:
            found = getattr(row, name)
            cells = [line[f"{name}{end}"] for end in ("", "_low", "_high")]
            if found is None:
                assert cells == ["", "", ""]
            else:
                assert [float(cell) for cell in cells] == [found.median, found.low, found.high]


def test_what_never_happened_is_infinite_and_not_missing() -> None:
    line = rows_of(write(*shown(made.aimed("single", (4, None, None)))))[0]
    assert [line[f"to_score_epochs{end}"] for end in ("", "_low", "_high")] == ["inf", "4.0", "inf"]
    assert (line["reached"], line["tried"], line["target"], line["target_name"]) == ("1", "3", "0.9", "accuracy")


def test_other_fields_are_single_cells() -> None:
    row = rows_of(write(*shown(made.troubled_campaign())))[1]
    assert row["label"] == "ddp x2"
    assert row["seat_batch"] == "32; 32"
    assert row["outcomes"] == "done: 3; failed: 1"
    assert row["is_baseline"] == "false"
    assert row["doubts"] == "few repeats: 3 runs"
    assert row["memory_bytes"] == "cpu: 314572800"


def test_a_swept_key_has_a_column() -> None:
    assert [row["point.train.batch"] for row in rows_of(write(*shown(made.swept_campaign())))] == [
        "64",
        "64",
        "256",
        "256",
    ]


def is_formula(cell: str) -> bool:
    # A figure below 0 is one that a spreadsheet takes for a number, too.
    return cell.lstrip()[:1] in tuple("=+-@\t\r＝＋－＠") and not re.fullmatch(r"-\d+(\.\d+)?(e-?\d+)?", cell)


@pytest.mark.parametrize("name", HOSTILE)
def test_no_cell_can_be_run(name: str) -> None:
    records = [*made.repeats("single", made.SLOW), *made.repeats(name, made.FAST, ways=2, strategy="ddp")]
    records.append(made.make(name, 9, ways=2, strategy="ddp", outcome="failed", reason=name, data=None))
    text = write(*shown(records))
    row = rows_of(text)[1]
    assert row["label"].removeprefix("'") == plain(name)
    assert row["reason"].removeprefix("'") == plain(name)
    assert not any(is_formula(cell) for cell in row.values())
    assert text.replace("\n", "").isprintable()


def test_a_swept_key_cannot_be_run_either() -> None:
    records = made.repeats("single", made.SLOW, point={"=cmd()": "=value()"})
    (row,) = rows_of(write(*shown(records)))
    assert row["point.=cmd()"] == "'=value()"


@pytest.mark.parametrize(("label", "cell"), [("-5", "-5"), ("+1.5e3", "+1.5e3"), ("-5-cmd", "'-5-cmd"), ("+", "'+")])
def test_numbers_keep_their_sign(label: str, cell: str) -> None:
    assert rows_of(write(*shown(made.repeats(label, made.SLOW), label)))[0]["label"] == cell


SUMMARIES, VERDICT = shown(made.repeats("single", made.SLOW))


@settings(deadline=None, max_examples=300)
@given(label=st.one_of(st.text(), st.text(alphabet="=+-@\t\r\n ;,\"'|0123456789.e＝", max_size=12)))
def test_any_label_is_read_back_and_never_run(label: str) -> None:
    (row,) = rows_of(write([replace(SUMMARIES[0], label=label)], VERDICT))
    cell = row["label"]
    assert cell in (plain(label), f"'{plain(label)}")
    if is_formula(cell):
        assert float(cell) is not None


@settings(deadline=None)
@given(label=st.text(alphabet=';\t,"=x', min_size=1, max_size=8))
def test_a_reader_that_parts_at_semicolons_keeps_the_label_in_one_cell(label: str) -> None:
    line = write([replace(SUMMARIES[0], label=label)], VERDICT).splitlines()[1]
    (first, *_) = next(csv.reader([line], delimiter=";"))
    assert not first.startswith("=")
    if ";" in plain(label):
        assert plain(label) in first
