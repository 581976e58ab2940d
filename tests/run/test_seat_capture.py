"""A seat from its assignment to its result: captured or not, the same losses and scores."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from fake_graph import FakeRecorder
from msgspec import structs

from escala.data.base import Request
from escala.data.prepared import prepare
from escala.run.assignment import Assignment, SeatResult
from escala.run.group import Group
from escala.run.seat import sit
from escala.strategies import learner as learners
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.trial import Seat, StrategyUse, Trial


def seated(execution: ExecutionSpec, folder: Path) -> SeatResult:
    trial = Trial(
        id="t",
        label="single",
        workload="mlp",
        options={"dropout": 0.1, "hidden": (16,)},
        data="d",
        validation=None,
        limit=None,
        strategy=StrategyUse("single", 1, "cpu"),
        execution=execution,
        train=TrainSpec(batch=64, epochs=2, optimizer="adamw", lr=0.01, schedule="cosine"),
        batch=64,
        seats=(Seat(0, 0, ("cpu",), (0, 64), 1),),
        seed=3,
        repeat=0,
    )
    job = Assignment(trial, 0, str(folder), str(folder), time.monotonic(), block_s=0.05, timeout_s=60.0)
    return sit(job, Group(0, 1), lambda _: None, lambda _: None)


@pytest.mark.parametrize("feed", ["memory", "resident"])
def test_the_result_is_the_same(
    feed: str, images: Path, tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = FakeRecorder()
    monkeypatch.setattr(learners, "recorder_on", lambda _: recorder)
    folder = Path(prepare(Request(str(images), 0.1), tmp_path, env, lambda _: None).folder)
    execution = ExecutionSpec("fp64", feed=feed)  # type: ignore[arg-type]
    plain, captured = (seated(which, folder) for which in (execution, structs.replace(execution, capture=True)))
    # 540 rows are 9 batches, of which the last has 28 rows.
    assert len(plain.losses) == 18
    assert captured.losses == pytest.approx(plain.losses, rel=1e-10)
    assert captured.test_scores == plain.test_scores
    assert [epoch.score for epoch in captured.epochs] == [epoch.score for epoch in plain.epochs]
    # Two shapes, and where a measurement decides, one or several steps in a graph.
    assert recorder.recorded in {"memory": (2,), "resident": (2, 4)}[feed]
    assert f" s, {recorder.recorded} graphs" in captured.software["capture"]
    assert ("in one" in captured.software["capture"]) == (feed == "resident")
    assert "captured while training" not in captured.software
    assert "capture" not in plain.software
