"""Columns of time to score and of what the score lost, in every form of a report."""

from __future__ import annotations

import json
from collections.abc import Sequence

import msgspec
import pytest
import recorded as made
from msgspec.structs import replace
from shown import shown

from escala.report import json_text, markdown, terminal
from escala.report.score_columns import LOST, TIME_TO_SCORE
from escala.report.table import FURTHER, Table, tables
from escala.terms.record import Record, Score

TITLES = ("reached", "epochs to score", "time to score, s", "speed-up, to score")


def aimed() -> list[Record]:
    return [
        *made.aimed("single", (8, 8, 9, 8, 8)),
        *made.aimed("ddp x2", (4, 4, 5, None, 4), ways=2),
        *made.aimed("ddp x4", (None, None, 2, None, None), ways=4),
    ]


def column(table: Table, title: str) -> Sequence[str]:
    (cells,) = [column.cells for column in table.columns if column.title.replace("\n", " ") == title]
    return cells


def titles(table: Table) -> list[str]:
    return [column.title.replace("\n", " ") for column in table.columns]


def test_how_soon_the_rows_came_to_their_target() -> None:
    (table,) = tables(*shown(aimed()))
    assert column(table, "reached") == ("5 of 5", "4 of 5", "1 of 5")
    assert column(table, "epochs to score") == ("8 [8, 9]", "4 [4, never]", "never [2, never]")
    assert column(table, "time to score, s") == ("8.80 [8.80, 9.90]", "4.40 [4.40, never]", "never [2, never]")
    assert column(table, "speed-up, to score") == ("1.00", "2.00 [0.00, 2.25]", "")
    assert "until accuracy 0.9" in table.facts[0]
    assert "up to 10 epochs" in table.facts[0]
    assert not {"total s", "speed-up, all phases", "steps"} & set(titles(table))


def test_a_row_of_which_no_run_came_there_says_never_once() -> None:
    (table,) = tables(*shown([*made.aimed("single", (4,) * 3), *made.aimed("b", (None,) * 3)]))
    assert column(table, "reached") == ("3 of 3", "0 of 3")
    assert (column(table, "epochs to score")[1], column(table, "time to score, s")[1]) == ("never", "never")


def test_without_a_target_there_are_no_such_columns() -> None:
    (table,) = tables(*shown(made.clean_campaign()))
    assert not set(TITLES) & set(titles(table))
    for write in (terminal.write, markdown.write):
        assert "train.until" not in write(*shown(made.clean_campaign()))


def test_rows_with_other_targets_say_which() -> None:
    (table,) = tables(*shown([*made.aimed("single", (4,) * 5), *made.aimed("b", (4,) * 5, until=0.8)]))
    assert column(table, "target") == ("accuracy 0.9", "accuracy 0.8")
    assert "until" not in table.facts[0]


def test_the_score_lost_is_signed_in_points_and_blank_for_the_baseline() -> None:
    records = [*made.repeats("single", made.SLOW, [0.87] * 5)]
    records += made.repeats("worse", made.FAST, [0.847] * 5) + made.repeats("better", made.FAST, [0.88] * 5)
    (table,) = tables(*shown(records))
    assert column(table, "score lost, points") == ("", "+2.30 [+2.30, +2.30]", "-1.00 [-1.00, -1.00]")


def test_a_signed_interval_stays_readable_in_markdown() -> None:
    records = made.repeats("single", made.SLOW, [0.87] * 5) + made.repeats("worse", made.FAST, [0.847] * 5)
    assert "| +2.30 [+2.30, +2.30] |" in markdown.write(*shown(records))


def test_of_one_run_there_is_no_interval_of_what_was_lost() -> None:
    (table,) = tables(*shown([made.make("single", score=0.87), made.make("ddp x2", score=0.85, ways=2)]))
    assert column(table, "score lost, points") == ("", "+2.00")


def test_a_score_that_should_be_low_loses_per_cent() -> None:
    records = [*made.repeats("single", made.SLOW, [40.0] * 5), *made.repeats("b", made.FAST, [42.0] * 5)]
    lower = [replace(one, score=Score("perplexity", one.score.value, 10, "lower")) for one in records if one.score]
    (table,) = tables(*shown(lower))
    assert column(table, "score lost, %") == ("", "+5.00 [+5.00, +5.00]")


def test_a_score_on_a_scale_of_its_own_is_lost_on_that_scale() -> None:
    (table,) = tables(
        *shown([*made.repeats("single", made.SLOW, [41.5] * 5), *made.repeats("b", made.FAST, [41.0] * 5)])
    )
    assert column(table, "score lost") == ("", "+0.5000 [+0.5000, +0.5000]")


@pytest.mark.parametrize("write", [terminal.write, markdown.write])
def test_the_legend_explains_the_columns_that_there_are(write: object) -> None:
    told = " ".join(write(*shown(aimed())).replace("\\", "").split())  # type: ignore[operator]
    assert all(FURTHER[beginning] in told for beginning in (LOST, TIME_TO_SCORE))
    assert "1 of 5" in told
    assert "never" in told


def test_json_carries_the_fields_and_null_for_never() -> None:
    found = json.loads(json_text.write(*shown(aimed())))
    single, ddp, never = found["summaries"]
    assert (single["target"], single["target_name"], single["reached"], single["tried"]) == (0.9, "accuracy", 5, 5)
    assert ddp["to_score_epochs"] == {"median": 4.0, "low": 4.0, "high": None, "values": [4.0, 4.0, 5.0, None, 4.0]}
    assert (never["to_score_s"]["median"], never["speedup_to_score"]) == (None, None)
    assert msgspec.json.decode(json_text.write(*shown(made.clean_campaign())))["summaries"][2]["tolerance"] == 0.01
