"""The report as JSON: for programs."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
import recorded as made
from msgspec.structs import replace
from shown import CAMPAIGNS, HOSTILE, shown

from escala.analyse.row import Summary
from escala.analyse.verdict import Verdict
from escala.report.json_text import write


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_everything_reads_back(name: str) -> None:
    summaries, verdict = shown(CAMPAIGNS[name]())
    found = json.loads(write(summaries, verdict), parse_constant=no_constant)
    assert list(found) == ["schema", "verdict", "summaries", "published", "epochs", "attributions"]
    assert tuple(msgspec.convert(found["summaries"], list[Summary])) == summaries
    assert msgspec.convert(found["verdict"], Verdict) == verdict


def test_keys_do_not_change_from_one_writing_to_the_next() -> None:
    found = shown(made.swept_campaign())
    assert write(*found) == write(*found)
    assert list(json.loads(write(*found))["summaries"][0])[:4] == ["label", "point", "workload", "data"]


def test_what_is_no_number_is_null() -> None:
    summaries, verdict = shown(made.repeats("single", made.SLOW))
    assert summaries[0].train_s is not None
    broken = replace(summaries[0], train_s=replace(summaries[0].train_s, high=math.inf, low=math.nan))
    found = json.loads(write([broken], verdict), parse_constant=no_constant)
    assert found["summaries"][0]["train_s"]["high"] is None
    assert found["summaries"][0]["train_s"]["low"] is None


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_whole_but_tame(name: str) -> None:
    text = write(*shown([*made.repeats("single", made.SLOW), *made.repeats(name, made.FAST, strategy="ddp")]))
    assert text.replace("\n", "").isprintable()
    assert json.loads(text)["summaries"][1]["label"] == name
