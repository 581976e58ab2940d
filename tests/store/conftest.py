"""Records to write, and a disk small enough to fill."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from escala.store.journal import append
from escala.terms.experiment import ExecutionSpec, Experiment, StrategySpec, TrainSpec, WorkloadSpec
from escala.terms.host import Host
from escala.terms.record import Epoch, Outcome, Phases, Reading, Record, Score
from escala.terms.trial import Seat, StrategyUse, Trial

HOST = Host(cpu="some cpu", cores=2, memory_bytes=8 << 30, system="Linux", software={"torch": "2.13.0"}, name="here")


def build_trial(name: str = "a1", repeat: int = 0, options: dict[str, object] | None = None) -> Trial:
    return Trial(
        id=name,
        label="ddp cpu ×2",
        workload="mlp",
        options=options or {"dropout": 0.0},
        data="fashion-mnist",
        validation=1 / 12,
        limit=None,
        strategy=StrategyUse("ddp", 2, "cpu"),
        execution=ExecutionSpec(),
        train=TrainSpec(epochs=3),
        batch=64,
        seats=(Seat(0, 0, ("cpu",), (0, 32), 1), Seat(1, 0, ("cpu",), (32, 64), 1)),
        seed=0,
        repeat=repeat,
    )


def build_record(
    name: str = "a1",
    *,
    outcome: Outcome = "done",
    losses: tuple[float, ...] = (2.302, 1.5, 0.1 + 0.2),
    trial: Trial | None = None,
    reason: str | None = None,
) -> Record:
    return Record(
        id=name,
        trial=trial or build_trial(name),
        outcome=outcome,
        host=HOST,
        reason=reason,
        setup_s=2.25,
        phases=Phases(3.5, 0.25, 0.125),
        epochs=(Epoch(1.75, 0.5, "0123abcd", 0.125, 0.84),),
        block_seconds=(0.251, 0.252),
        steps_per_block=40,
        steps=3,
        samples_per_second=1234.5678,
        score=Score("accuracy", 0.8512, 10_000),
        losses=losses,
        memory_bytes={"cpu": 123_456_789},
        readings=(Reading("peak memory", "cpu", 123_456_789.0, "bytes", "counter"),),
    )


@pytest.fixture(scope="session")
def make_record() -> Callable[..., Record]:
    return build_record


@pytest.fixture(scope="session")
def make_trial() -> Callable[..., Trial]:
    return build_trial


@pytest.fixture
def experiment() -> Experiment:
    return Experiment(
        workload=WorkloadSpec("mlp", options={"dropout": 0.0}),
        train=TrainSpec(batch=64, epochs=2),
        strategy=(StrategySpec("single"), StrategySpec("ddp", ways=2)),
    )


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """A log of three records, `a`, `b` and `c`, alone in its folder."""
    path = tmp_path / "campaign" / "records.jsonl"
    path.parent.mkdir()
    for name in "abc":
        append(path, build_record(name))
    return path


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """A file system of its own; call it with mount options, and again to change them. Gives the folder."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = False

    def mount(options: str) -> Path:
        nonlocal mounted
        words = f"remount,{options}" if mounted else options
        command = [shutil.which("mount") or "mount", "-t", "tmpfs", "-o", words, "escala-test", str(place)]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"mounting a small disk is not allowed here: {getattr(error, 'stderr', '') or error}")
        mounted = True
        return place

    try:
        yield mount
    finally:
        if mounted:
            subprocess.run([shutil.which("umount") or "umount", str(place)], check=True)
