"""The screens that come before a campaign."""

from __future__ import annotations

import pytest
import recorded as made
from msgspec.structs import replace
from rich.cells import cell_len
from shown import HOSTILE

from escala.plan.estimate import Estimate
from escala.report.plan_text import plan_plain, plan_text
from escala.report.probe_text import host_text
from escala.terms.host import Device, Host

REASON = "needs 8 cuda devices; this host has 4 (simulate = true lets seats share one)"
FITS = (("single cpu", None), ("ddp x8 cuda", REASON))


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", [60, 80, 200])
def test_the_host_and_what_fits_it(width: int) -> None:
    text = host_text(made.GPUS, FITS, width=width)
    assert max(cell_len(line) for line in text.splitlines()) <= width
    told = words(text)
    assert "processor Xeon Test, 8 cores usable" in told
    assert "memory 64.0 GiB" in told
    assert "cuda:3 Test GPU, 80.0 GiB" in told
    assert "software torch 2.13.0" in told
    assert "single cpu fits" in told
    assert f"ddp x8 cuda does not fit: {REASON}" in told


def test_a_host_without_accelerators_says_so() -> None:
    assert "no accelerator" in host_text(made.HOST, [], width=80)


def test_several_nodes_are_counted() -> None:
    assert "nodes 2" in words(host_text(replace(made.HOST, nodes=2), [], width=80))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_host_is_only_shown(name: str) -> None:
    host = Host(name, 2, 2**30, name, (Device("cuda", 0, name, 2**30),), {name: name}, {name: name}, name)
    text = host_text(host, [(name, name), (name, None)], width=100)
    assert text.replace("\n", "").isprintable()
    assert max(cell_len(line) for line in text.splitlines()) <= 100


def test_a_plan_shows_each_row_once_with_its_seats() -> None:
    text = plan_text([record.trial for record in made.clean_campaign()], width=80)
    assert text.splitlines() == [
        "15 runs, one after another",
        "Batches are global; a seat sees its rows of each of them.",
        "",
        "strategy  batch  budget    repeats  rank  device  threads  rows (per seat)",
        "─" * 74,
        "single       64  2 epochs        5     0  cuda:0        8     0 to 63 (64)",
        "ddp x1       64  2 epochs        5     0  cuda:0        8     0 to 63 (64)",
        "ddp x2       64  2 epochs        5     0  cuda:0        4     0 to 31 (32)",
        "                                       1  cuda:1        4    32 to 63 (32)",
    ]


def test_rows_and_blocks_stand_in_the_order_given() -> None:
    trials = [record.trial for record in made.clean_campaign()]
    assert plan_text(trials[::-1], width=80).splitlines()[-1].startswith("single")
    text = plan_text([record.trial for record in made.swept_campaign()], width=80)
    assert text.index("train.batch = 256") < text.index("train.batch = 64")
    assert text.startswith("20 runs")


def test_what_does_not_fit_is_named_with_its_reason_and_not_counted() -> None:
    text = plan_text([record.trial for record in made.troubled_campaign()], width=80)
    assert text.startswith("12 runs")
    assert "Does not fit\nddp x4  needs 4 CPU cores; this host has 2\n" in text


def test_a_budget_of_steps() -> None:
    assert "300 steps" in plan_text([made.make(steps=300).trial], width=80)


def test_one_process_with_several_devices_and_several_nodes() -> None:
    trial = made.make("data-parallel x2", ways=2, seats=1, host=made.GPUS, device="cuda").trial
    seat = replace(trial.seats[0], devices=("cuda:0", "cuda:1"))
    assert "cuda:0 + cuda:1 " in plan_text([replace(trial, seats=(seat,))], width=100)
    assert "cuda:0 on node 1 " in plan_text([replace(trial, seats=(replace(trial.seats[0], node=1),))], width=100)


def test_seats_that_work_together_are_shown_with_their_replica() -> None:
    trial = made.make(ways=2, seats=2).trial
    assert "replica" not in plan_text([trial], width=100)
    joined = replace(trial, seats=tuple(replace(seat, replica=0, rows=(0, trial.batch)) for seat in trial.seats))
    assert "replica" in plan_text([joined], width=100)


def test_a_seat_without_rows_says_so() -> None:
    trial = made.make(ways=3, batch=2).trial
    assert "none (0)" in plan_text([trial], width=80)


def test_the_width_is_the_terminals_where_none_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "70")
    trials = [record.trial for record in made.troubled_campaign()]
    assert plan_text(trials) == plan_text(trials, width=70)
    assert host_text(made.GPUS, FITS) == host_text(made.GPUS, FITS, width=70)


def test_an_empty_plan() -> None:
    assert plan_text([], width=80) == "The plan holds no trial.\n"


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_trial_is_only_shown(name: str) -> None:
    fits = made.make(name, strategy="single", point={"key": name}).trial
    unfit = made.make(name, strategy="single", outcome="unfit", reason=name, data=None).trial
    text = plan_text([fits, unfit], width=120)
    assert text.replace("\n", "").isprintable()
    assert max(cell_len(line) for line in text.splitlines()) <= 120


def test_expected_memory_stands_beside_each_seat_and_in_plain_data() -> None:
    known, unknown = made.make(ways=2, seats=2).trial, replace(made.make("other").trial, id="other")
    memory = {known.id: {"cpu": Estimate(peak=3 * 2**30, parameters=5)}}
    lines = plan_text([known, unknown], memory, width=120).splitlines()
    assert lines[3].split()[-1] == "memory"
    assert [line.split()[-2:] for line in lines[5:7]] == [["3.00", "GiB"], ["3.00", "GiB"]]
    assert lines[7].endswith("not known")
    assert "memory" not in plan_text([known, unknown], width=120)
    told = plan_text([known, unknown], memory, {known.id: None, unknown.id: "it looks at numbers"}, width=120)
    assert told.splitlines()[:-3] == lines
    assert told.splitlines()[-2:] == ["Memory not known", "other  it looks at numbers"]
    plain = plan_plain([known, unknown], memory)
    assert [one["label"] for one in plain] == [known.label, unknown.label]
    assert plain[0]["memory_estimate"]["cpu"]["peak"] == 3 * 2**30
    assert plain[1]["memory_estimate"] == {}
