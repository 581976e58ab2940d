from __future__ import annotations

from dataclasses import replace as with_
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from escala.plan.expand import trials
from escala.plan.preflight import Facts, Preflight
from escala.plan.read import parse
from escala.run import best
from escala.run.assignment import Failure, SeatResult
from escala.run.launch import Ended
from escala.strategies import strategy
from escala.terms.errors import EscalaError, Interrupted
from escala.terms.experiment import ExecutionSpec, MeasureSpec
from escala.terms.host import Device, Host
from escala.terms.record import DataUse
from escala.terms.trial import StrategyUse, Trial

TEXT = """
execution = "best"
[workload]
name = "mlp"
data = "d"
[train]
batch = 64
epochs = 1
schedule = "one-cycle"
warmup_steps = 3
[[strategy]]
name = "single"
[measure]
repeats = 2
"""
HOST = Host(cpu="c", cores=2, memory_bytes=2**33, system="s")


def asked() -> tuple[Trial, Facts]:
    experiment = parse(TEXT, "e.toml").experiment
    use = DataUse("d", "real", "w", "x", {"train": 1000, "validation": 0, "test": 1}, 10)
    facts = Facts(experiment.workload, "d", use, 1, 1, (), folder="/data")
    return trials(experiment, Preflight(HOST, (facts,)))[0], facts


@pytest.fixture
def chooser(tmp_path: Path) -> best.Chooser:
    now = iter(second / 10 for second in range(10_000))
    return best.Chooser(
        HOST, MeasureSpec(), "mark", tmp_path / "logs", tmp_path / "cache", lambda _: None, lambda: next(now)
    )


def ended(trial: Trial, speed: float) -> Ended:
    steps = trial.train.steps or 0
    result = SeatResult(
        setup_s=1,
        first_step_s=1,
        settled=True,
        steps_per_block=1,
        block_seconds=(),
        losses=tuple(1 / (step + 1) for step in range(steps)),
        epochs=(),
        steps=steps,
        samples=steps * trial.batch,
        train_s=steps * trial.batch / speed,
    )
    return Ended((result,))


def running(monkeypatch: pytest.MonkeyPatch, speed_of: Any, *, drops: bool = False) -> list[Trial]:
    ran = list[Trial]()

    def run_trial(trial: Trial, *_: Any, probing: bool, **__: Any) -> Ended:
        # Runs with dropout are timed, and those without it compared; networks that drop nothing need no second one.
        assert probing or drops
        ran.append(trial)
        found = speed_of(trial.execution)
        return Ended(failure=found) if isinstance(found, Failure) else ended(trial, found)

    monkeypatch.setattr(best, "run_trial", run_trial)
    return ran


def test_the_fastest_is_chosen_and_kept_for_the_next_campaign(
    chooser: best.Chooser, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, facts = asked()
    ran = running(monkeypatch, lambda execution: 3000.0 if execution.optimizer_kernel == "fused" else 1000.0)
    choice = chooser.choose(trial, facts)
    assert choice.execution == ExecutionSpec(optimizer_kernel="fused")
    assert choice.seats == trial.seats
    assert {one.execution for one in choice.tried} == {one.execution for one in ran}
    before = len(ran)
    assert chooser.choose(trial, facts) == choice
    assert len(ran) == before
    # Another repeat is the same row; another batch is another question.
    assert chooser.choose(replace(trial, repeat=1, seed=9), facts) == choice
    chooser.choose(replace(trial, batch=32), facts)
    assert len(ran) > before


def test_a_network_that_drops_is_timed_with_dropout_and_its_winner_compared_without(
    chooser: best.Chooser, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, facts = asked()
    timed = list[bool]()

    def run_trial(trial: Trial, *_: Any, probing: bool, **__: Any) -> Ended:
        timed.append(not probing)
        return ended(trial, 3000.0 if trial.execution.dropout_kernel == "packed" else 1000.0)

    monkeypatch.setattr(best, "run_trial", run_trial)
    choice = chooser.choose(trial, replace(facts, drops=True, packs=True))
    assert choice.execution == ExecutionSpec(dropout_kernel="packed")
    # The plain run and the winner once more, at the end.
    assert timed.count(False) == 2
    assert timed[-2:] == [False, False]


def test_a_choice_that_cannot_be_read_is_looked_for_again(
    chooser: best.Chooser, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial, facts = asked()
    ran = running(monkeypatch, lambda _: 1000.0)
    choice = chooser.choose(trial, facts)
    assert choice.execution == ExecutionSpec()
    (kept,) = chooser.cache.iterdir()
    kept.write_bytes(b"{")
    before = len(ran)
    assert chooser.choose(trial, facts) == choice
    assert len(ran) > before


def test_a_search_cut_short_is_not_kept(chooser: best.Chooser, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, facts = asked()
    running(monkeypatch, lambda _: 1000.0)
    with_(chooser, measure=MeasureSpec(best_s=2.0)).choose(trial, facts)
    assert not chooser.cache.exists() or not list(chooser.cache.iterdir())


def test_short_runs_have_one_learning_rate_and_the_first_seed() -> None:
    trial, _ = asked()
    run = best.short(replace(trial, repeat=1, seed=5), 40)
    assert (run.train.steps, run.train.epochs, run.train.schedule, run.train.warmup_steps) == (
        40,
        None,
        "constant",
        0,
    )
    assert (run.seed, run.repeat) == (0, 0)


def test_keys_that_the_experiment_sets_are_left_alone() -> None:
    trial, facts = asked()
    facts = replace(facts, images=False)
    free = best.admissible(trial, ExecutionSpec(optimizer_kernel="foreach"), facts, HOST)
    assert "optimizer_kernel" not in free
    assert free["feed"] == ("host",)
    # Sockets and shared memory are for several seats, and this network has no images.
    assert "transport" not in free
    assert "memory_format" not in free


def test_seats_on_gpus_may_meet_in_their_memory_and_are_bound_to_no_core() -> None:
    trial, facts = asked()
    cards = (Device("cuda", 0, "GPU", 1), Device("cuda", 1, "GPU", 1))
    host = replace(HOST, devices=cards)
    use = StrategyUse("ddp", 2, "cuda")
    trial = replace(trial, strategy=use, seats=strategy(use).seats(host, trial.batch))
    free = best.admissible(trial, ExecutionSpec(), facts, host)
    assert free["transport"] == ("shm",)
    assert free["overlap"] == ("optimizer",)
    assert "pin" not in free


def test_what_fails_is_tried_and_told(chooser: best.Chooser, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, facts = asked()
    running(monkeypatch, lambda e: Failure("failed", "no compiler") if e.compile else 1000.0)
    choice = chooser.choose(trial, facts)
    assert {one.reason for one in choice.tried if one.execution.compile} <= {"no compiler"}


def test_a_plain_run_that_fails_is_an_error(chooser: best.Chooser, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, facts = asked()
    running(monkeypatch, lambda _: Failure("failed", "broken"))
    with pytest.raises(EscalaError, match="broken") as caught:
        chooser.choose(trial, facts)
    assert caught.value.code == "CFG-BEST"


def test_an_interruption_ends_the_search(chooser: best.Chooser, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, facts = asked()
    running(monkeypatch, lambda _: Failure("interrupted", "asked to stop"))
    with pytest.raises(Interrupted):
        chooser.choose(trial, facts)


def test_capture_is_tried_where_there_are_graphs() -> None:
    trial, facts = asked()
    assert "capture" not in best.admissible(trial, ExecutionSpec(), facts, HOST)
    host = replace(HOST, devices=(Device("cuda", 0, "g", 2**33),))
    trial = replace(trial, strategy=replace(trial.strategy, device="cuda"))
    assert best.admissible(trial, ExecutionSpec(), facts, host)["capture"] == (True,)
    assert "capture" not in best.admissible(trial, ExecutionSpec("fp16"), facts, host)
