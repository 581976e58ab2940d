"""The report on a terminal."""

from __future__ import annotations

import re

import pytest
import recorded as made
from rich.cells import cell_len
from shown import CAMPAIGNS, HOSTILE, shown

from escala.analyse.plain import LONGEST_NAME, plain
from escala.report.terminal import write

WIDTHS = (80, 120, 200)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_no_line_is_wider_than_the_terminal_and_nothing_is_cut(name: str, width: int) -> None:
    text = write(*shown(CAMPAIGNS[name]()), width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    # Long names are shortened once, in their middle; the table itself leaves nothing out.
    assert text.count("…") == 0 or name == "hostile"


@pytest.mark.parametrize("width", WIDTHS)
def test_every_figure_is_there_at_every_width(width: int) -> None:
    text = write(*shown(made.clean_campaign()), width=width)
    for figure in ("1.35 [1.34, 1.37]", "11,429", "1.70 [1.68, 1.72]", "1.90 [1.87, 1.92]", "85.2 %", "64 (32)"):
        assert figure in text


def test_a_narrow_table_goes_on_below_with_its_names_and_doubts() -> None:
    lines = write(*shown(made.troubled_campaign()), width=80).splitlines()
    heads = [line for line in lines if line.startswith("strategy")]
    assert len(heads) > 1
    assert all(line.endswith("doubts") for line in heads)
    assert len([line for line in lines if line.startswith("single (baseline)")]) == len(heads)


def test_a_wide_terminal_has_one_table() -> None:
    lines = write(*shown(made.clean_campaign()), width=200).splitlines()
    assert len([line for line in lines if line.startswith("strategy")]) == 1


def test_verdict_first_then_tables_then_doubts_with_advice() -> None:
    text = write(*shown(made.troubled_campaign()), width=120)
    places = [text.index(word) for word in ("Verdict", "is fastest", "strategy", "Not done", "Doubts", "few repeats")]
    assert places == sorted(places)
    assert "raise measure.repeats to 5" in " ".join(text.split())


@pytest.mark.parametrize("outcome", ["unfit", "out of memory", "diverged", "failed"])
def test_every_outcome_is_named(outcome: str) -> None:
    assert re.search(rf"^\S+.* {outcome}", write(*shown(made.troubled_campaign()), width=100), re.MULTILINE)


def test_both_sweep_points_head_a_block() -> None:
    text = write(*shown(made.swept_campaign()), width=120)
    assert text.index("train.batch = 64") < text.index("train.batch = 256")


def test_the_hosts_are_shown_apart_with_the_reason() -> None:
    text = " ".join(write(*shown(made.two_hosts()), width=120).split())
    assert "on Other Chip, 2 cores, torch 2.13.0" in text
    assert "other host (single, ddp x2: Other Chip against Xeon Test)" in text


def test_nothing_recorded() -> None:
    assert write(*shown([]), width=80) == "Nothing has been recorded yet.\n"


def test_colour_only_where_asked_for() -> None:
    plainly, coloured = (
        write(*shown(made.clean_campaign()), width=120),
        write(*shown(made.clean_campaign()), width=120, colour=True),
    )
    assert "\x1b" not in plainly
    assert "\x1b[1;32m" in coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert [line.rstrip() for line in bare.splitlines()] == plainly.splitlines()


def test_colour_is_not_switched_on_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("TTY_COMPATIBLE", "1"), ("COLORTERM", "truecolor")):
        monkeypatch.setenv(name, value)
    assert "\x1b" not in write(*shown(made.clean_campaign()), width=120)


def test_the_width_is_the_terminals_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    found = shown(made.clean_campaign())
    assert write(*found) == write(*found, width=90)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_only_a_name(name: str) -> None:
    records = [*made.repeats("single", made.SLOW), *made.repeats(name, made.FAST, ways=2, strategy="ddp")]
    text = write(*shown(records), width=200)
    assert text.replace("\n", "").isprintable()
    assert plain(name, LONGEST_NAME) in text


def test_a_very_narrow_terminal_still_gets_the_verdict() -> None:
    text = write(*shown(made.troubled_campaign()), width=40)
    assert max(cell_len(line) for line in text.splitlines()) <= 40
    assert "is fastest" in " ".join(text.split())
