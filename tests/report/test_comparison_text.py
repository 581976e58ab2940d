"""A comparison in every format."""

from __future__ import annotations

import csv
import io

import msgspec
import pytest
import recorded as made
from shown import HOSTILE

from escala.analyse.comparison import Comparison, compared
from escala.analyse.pairing import sides_of
from escala.report.comparison import COMPARISON_WRITERS


def comparison(label: str = "ddp x2") -> Comparison:
    before = [*made.repeats("single", made.SLOW), *made.repeats(label, made.FAST, ways=2, strategy="ddp")]
    after = [*made.repeats("single", made.FAST), *made.repeats(label, made.SLOW, ways=2, strategy="ddp")]
    return compared(sides_of(before), sides_of(after), ("main", "branch"), same_within=0.02, anyway=False)


@pytest.mark.parametrize("form", COMPARISON_WRITERS)
def test_every_format_tells_both_verdicts_and_the_ratio(form: str) -> None:
    text = COMPARISON_WRITERS[form](comparison())
    assert "faster" in text
    assert "slower" in text
    assert "1.70" in text
    assert text.endswith("\n")


def test_csv_has_a_cell_for_each_name_and_raw_figures() -> None:
    rows = list(csv.DictReader(io.StringIO(COMPARISON_WRITERS["csv"](comparison()))))
    assert [row["verdict"] for row in rows] == ["faster", "slower"]
    assert all(None not in row and None not in row.values() for row in rows)
    assert float(rows[0]["time_ratio"]) == pytest.approx(1.35 / 2.3)
    assert (rows[0]["worse_score"], float(rows[0]["a"])) == ("false", pytest.approx(2.3))


def test_json_is_everything_with_a_schema() -> None:
    found = msgspec.json.decode(COMPARISON_WRITERS["json"](comparison()))
    assert found["schema"] == 1
    assert found["comparison"]["rows"][0]["verdict"] == "faster"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_steer_nothing(name: str) -> None:
    found = comparison(name)
    for form, write in COMPARISON_WRITERS.items():
        text = write(found)
        assert "\x1b" not in text, form
        assert "\u202e" not in text, form
    markdown = COMPARISON_WRITERS["markdown"](found)
    assert "<script>" not in markdown
    cells = next(csv.reader(io.StringIO(COMPARISON_WRITERS["csv"](found).splitlines()[2])))
    assert not cells[0].startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))


def test_the_terminal_keeps_within_its_width() -> None:
    from escala.report.comparison import terminal_text

    assert max(map(len, terminal_text(comparison("x" * 300), 80).splitlines())) <= 80
