"""The table of writers, and what choosing one costs."""

from __future__ import annotations

import subprocess
import sys

import pytest
import recorded as made
from shown import CAMPAIGNS, shown

from escala.report import WRITERS


def test_the_writers_by_name() -> None:
    assert set(WRITERS) == {"terminal", "markdown", "csv", "json", "html"}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_every_writer_shows_every_campaign(writer: str, name: str) -> None:
    text = WRITERS[writer](*shown(CAMPAIGNS[name]()))
    assert text.endswith("\n")
    assert text == WRITERS[writer](*shown(CAMPAIGNS[name]()))


@pytest.mark.parametrize("writer", WRITERS)
def test_every_writer_names_each_row(writer: str) -> None:
    text = WRITERS[writer](*shown(made.troubled_campaign()))
    assert all(label in text for label in ("single", "ddp x2", "wide", "hot", "ddp x4"))
    assert "stopped by the keyboard" not in text


def test_a_report_needs_neither_torch_nor_scipy_and_a_choice_needs_nothing() -> None:
    script = """
import sys
import escala.report
early = {"numpy", "rich", "torch", "scipy"} & sys.modules.keys()
assert not early, early
from escala.analyse.summary import summarise
from escala.analyse.verdict import judge
import escala.report.live, escala.report.plan_text, escala.report.probe_text
for write in escala.report.WRITERS.values():
    write(summarise([]), judge([]))
late = {"torch", "scipy"} & sys.modules.keys()
assert not late, late
"""
    subprocess.run([sys.executable, "-c", script], check=True)
