"""As many rows at once as fit: the search, the runs it makes, and a campaign of real processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tiny
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from escala.plan.expand import trials
from escala.plan.preflight import Facts, Preflight
from escala.plan.read import parse
from escala.run import largest as search
from escala.run.assignment import Failure
from escala.run.best import Chooser
from escala.run.choosing import as_chosen
from escala.run.largest import CannotRun, largest, sizes
from escala.run.launch import Ended
from escala.terms.errors import Interrupted
from escala.terms.experiment import MeasureSpec
from escala.terms.host import Host
from escala.terms.record import DataUse
from escala.terms.trial import Trial


@given(st.integers(1, 512), st.integers(0, 600))
def test_the_largest_that_fits_is_found_in_few_tries(rows: int, room: int) -> None:
    candidates = sizes(rows)
    asked = list[int]()

    def fits(size: int) -> bool:
        asked.append(size)
        return size <= room

    assert largest(candidates, fits) == max((size for size in candidates if size <= room), default=None)
    assert len(asked) == len(set(asked)), "asked twice"
    assert asked[0] == rows
    assert len(asked) <= 2 + 2 * len(candidates).bit_length() + rows.bit_length()
    # Beyond the first try, memory runs out once on the way up and then only between what fits and what does not.
    assert sum(size > room for size in asked) <= 2 + len(candidates).bit_length()


@given(st.integers(1, 300), st.integers(1, 20))
def test_sizes_divide_a_seats_rows_and_cut_no_block(rows: int, unit: int) -> None:
    found = sizes(rows, unit)
    assert list(found) == sorted(set(found))
    assert found == (rows,) or all(rows % size == 0 and size % unit == 0 for size in found)
    assert rows % unit or found[-1] == rows


TEXT = """
[workload]
name = "mlp"
data = "d"
[train]
batch = 64
epochs = 1
[execution]
microbatch = "max"
[[strategy]]
name = "single"
[measure]
repeats = 2
"""
HOST = Host(cpu="c", cores=2, memory_bytes=2**33, system="s")


def asked_for() -> tuple[Trial, Facts]:
    experiment = parse(TEXT, "e.toml").experiment
    use = DataUse("d", "real", "w", "x", {"train": 1000, "validation": 0, "test": 1}, 10)
    facts = Facts(experiment.workload, "d", use, 1, 1, (), folder="/data")
    return trials(experiment, Preflight(HOST, (facts,)))[0], facts


@pytest.fixture
def chooser(tmp_path: Path) -> Chooser:
    return Chooser(HOST, MeasureSpec(), "mark", tmp_path / "logs", tmp_path / "cache", lambda _: None, lambda: 0.0)


def running(monkeypatch: pytest.MonkeyPatch, room: int, otherwise: Failure | None = None) -> list[int]:
    ran = list[int]()

    def run_trial(trial: Trial, *_: Any, probing: bool = False, **__: Any) -> Ended:
        # Masks of dropout take memory, too.
        assert not probing
        assert trial.train.steps == 2
        size = trial.execution.at_once
        assert size is not None
        ran.append(size)
        if size <= room:
            return Ended()
        return Ended(failure=otherwise or Failure("out of memory", f"{size} rows"))

    monkeypatch.setattr(search, "run_trial", run_trial)
    return ran


def test_the_choice_is_kept_and_says_what_was_tried(chooser: Chooser, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, facts = asked_for()
    ran = running(monkeypatch, room=20)
    chosen, choice = as_chosen(chooser, trial, facts)
    assert choice is not None
    assert chosen.execution.microbatch == choice.execution.microbatch == 16
    assert [(one.execution.microbatch, one.reason) for one in choice.tried][:2] == [(64, "64 rows"), (1, None)]
    before = len(ran)
    assert as_chosen(chooser, replace(trial, repeat=1, seed=1), facts)[0].execution.microbatch == 16
    assert len(ran) == before


def test_where_all_rows_fit_nothing_is_cut(chooser: Chooser, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, facts = asked_for()
    ran = running(monkeypatch, room=64)
    assert as_chosen(chooser, trial, facts)[0].execution.microbatch is None
    assert ran == [64]


def test_what_fits_a_smaller_device_is_looked_for_anew(chooser: Chooser, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, facts = asked_for()
    running(monkeypatch, room=64)
    assert as_chosen(chooser, trial, facts)[0].execution.microbatch is None
    running(monkeypatch, room=8)
    limited = replace(trial, memory_gib={"cpu": 1.0})
    assert as_chosen(chooser, limited, facts)[0].execution.microbatch == 8


def test_a_given_number_is_left_alone(chooser: Chooser) -> None:
    trial, facts = asked_for()
    given_one = replace(trial, execution=replace(trial.execution, microbatch=4))
    assert as_chosen(chooser, given_one, facts) == (given_one, None)


@pytest.mark.parametrize(
    ("failure", "outcome", "reason"),
    [
        (None, "out of memory", "does not fit, not even with 1 row at once: 1 rows"),
        (Failure("failed", "no such layer"), "failed", "no such layer"),
    ],
)
def test_what_cannot_run_is_a_result(
    failure: Failure | None, outcome: str, reason: str, chooser: Chooser, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, facts = asked_for()
    running(monkeypatch, 0, failure)
    with pytest.raises(CannotRun) as caught:
        as_chosen(chooser, trial, facts)
    assert (caught.value.failure.outcome, caught.value.failure.reason) == (outcome, reason)


def test_a_stop_while_fitting_stops_the_campaign(chooser: Chooser, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, facts = asked_for()
    running(monkeypatch, 0, Failure("interrupted", "asked to stop"))
    with pytest.raises(Interrupted):
        as_chosen(chooser, trial, facts)


EXPERIMENT = """
[workload]
name = "roomy:network"
data = "{images}"
[train]
batch = 64
epochs = 1
[execution]
microbatch = "max"
[[strategy]]
name = "single"
[measure]
repeats = 1
cooldown_s = 0
[sweep]
"workload.options" = [{{ room = 20 }}, {{ room = 0 }}]
"""


@pytest.mark.slow
def test_a_campaign_goes_on_after_a_row_that_fits_nowhere(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(images=images))
    ended = tiny.escala(["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "c"), "--quiet"], env)
    assert ended.returncode == 5, ended.stderr
    roomy, none = sorted(tiny.records(tmp_path / "c"), key=lambda record: record["outcome"])
    assert (roomy["outcome"], roomy["execution"]["microbatch"]) == ("done", 16)
    assert [one["execution"]["microbatch"] for one in roomy["tried"]] == [64, 1, 2, 4, 8, 16, 32]
    assert none["outcome"] == "out of memory"
    assert none["reason"].startswith("does not fit, not even with 1 row at once")
