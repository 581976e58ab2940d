"""One campaign in which every kind of fault happens once to each strategy, and what its records say."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import tiny

pytestmark = pytest.mark.slow

# Fault -> (outcome, words of the reason).
EXPECTED = {
    "raise": ("failed", "ValueError: planted in the network"),
    "kill": ("failed", "killed by SIGKILL at step 3"),
    "kill in backward": ("failed", "killed by SIGKILL at step 3"),
    "kill in evaluation": ("failed", "killed by SIGKILL at step 9"),
    "stop": ("failed", "stood still for 3 s at step 3"),
    "leave": ("failed", "ended early at step 3 with code 0"),
    "exit": ("failed", "ended early: the code called exit(0)"),
    "leave with 137": ("out of memory", "137"),
    "not finite": ("diverged", "not finite at step 3"),
    "too large": ("out of memory", "allocate"),
}
STRATEGIES = ("single", "ddp x2")


def experiment(images: Path, faults: list[str], epochs: int = 1, heartbeat_s: float = 3) -> str:
    swept = ", ".join(f'"{fault}"' for fault in faults)
    return f"""
[workload]
name = "faulty:network"
data = "{images}"
validation = 0.1
[train]
batch = 64
epochs = {epochs}
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
[measure]
repeats = 1
cooldown_s = 0
heartbeat_s = {heartbeat_s}
[sweep]
"workload.options.fault" = [{swept}]
"""


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory, images: Path, env: dict[str, str]) -> tuple[Path, int]:
    folder = tmp_path_factory.mktemp("faulty")
    (folder / "e.toml").write_text(experiment(images, [*EXPECTED, ""]))
    ended = tiny.escala(["run", str(folder / "e.toml"), "--out", str(folder / "c"), "--quiet"], env)
    assert "error[" not in ended.stderr
    return folder / "c", ended.returncode


def record_of(folder: Path, label: str, fault: str) -> dict[str, Any]:
    (found,) = [
        record
        for record in tiny.records(folder)
        if record["trial"]["label"] == label and record["trial"]["options"]["fault"] == fault
    ]
    return found


@pytest.mark.parametrize("label", STRATEGIES)
@pytest.mark.parametrize("fault", EXPECTED)
def test_the_record_names_the_first_cause(faulty: tuple[Path, int], label: str, fault: str) -> None:
    record = record_of(faulty[0], label, fault)
    outcome, words = EXPECTED[fault]
    assert (record["outcome"], words in record["reason"]) == (outcome, True), record["reason"]
    if label == "ddp x2":
        assert "rank 1" in record["reason"]
    # All seats gone within 10 s of the fault; start-up and the heart-beat limit come on top.
    assert record["wall_s"] < 10 + 10 + 3


@pytest.mark.parametrize("label", STRATEGIES)
def test_the_campaign_goes_on_after_every_fault(faulty: tuple[Path, int], label: str) -> None:
    folder, code = faulty
    assert code == 5
    assert len(tiny.records(folder)) == len(STRATEGIES) * (len(EXPECTED) + 1)
    sound = record_of(folder, label, "")
    assert sound["outcome"] == "done"
    assert sound["score"]["samples"] == 200


def test_no_process_is_left(faulty: tuple[Path, int]) -> None:
    assert tiny.processes_of(faulty[0]) == []


def test_a_divergence_keeps_the_losses_up_to_its_step(faulty: tuple[Path, int]) -> None:
    for label in STRATEGIES:
        record = record_of(faulty[0], label, "not finite")
        assert len(record["losses"]) == 4
        assert all(isinstance(loss, float) for loss in record["losses"][:3])


def test_memory_that_ran_out_is_recorded_with_the_peak(faulty: tuple[Path, int]) -> None:
    for label in STRATEGIES:
        assert record_of(faulty[0], label, "too large")["memory_bytes"]["cpu"] > 50_000_000


def test_a_limit_on_memory_is_a_result_and_the_next_trial_starts_clean(
    tmp_path: Path, images: Path, env: dict[str, str]
) -> None:
    (tmp_path / "e.toml").write_text(
        experiment(images, ["too large", ""]).replace('[[strategy]]\nname = "ddp"\nways = 2\n', "")
    )
    limit = 12 << 30

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    command = ["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "c"), "--quiet"]
    ended = tiny.escala(command, env, preexec_fn=limited)
    assert ended.returncode == 5, ended.stderr
    assert {record["trial"]["options"]["fault"]: record["outcome"] for record in tiny.records(tmp_path / "c")} == {
        "too large": "out of memory",
        "": "done",
    }


def test_seats_that_share_memory_end_together_too(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    """No socket tells that the other end is gone: the parent ends whoever waits for gradients in vain."""
    faults = ["kill", "kill in backward", "stop", ""]
    text = experiment(images, faults).replace('[[strategy]]\nname = "single"\n', "")
    (tmp_path / "e.toml").write_text(text + '[execution]\ntransport = "shm"\npin = true\nthreads = 1\n')
    ended = tiny.escala(["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "c"), "--quiet"], env)
    assert (ended.returncode, "error[" in ended.stderr) == (5, False), ended.stderr
    for fault in faults[:-1]:
        record = record_of(tmp_path / "c", "ddp x2", fault)
        outcome, words = EXPECTED[fault]
        assert (record["outcome"], f"rank 1: {words}" in record["reason"]) == (outcome, True), record["reason"]
        assert record["wall_s"] < 10 + 10 + 3
    sound = record_of(tmp_path / "c", "ddp x2", "")
    assert (sound["outcome"], sound["score"]["samples"]) == ("done", 200)
    assert sound["software"]["seats bound to cores"].count(";") == 1
    assert tiny.processes_of(tmp_path / "c") == []


def test_seats_die_with_a_parent_that_is_killed(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    """A parent that is killed with SIGKILL can tell nobody; the same command then ends the campaign."""
    (tmp_path / "e.toml").write_text(experiment(images, ["stop"], heartbeat_s=60))
    folder = tmp_path / "c"
    command = ["-m", "escala", "run", str(tmp_path / "e.toml"), "--out", str(folder), "--quiet"]
    parent = subprocess.Popen([sys.executable, *command], env=env)
    stopped = tiny.wait_for(lambda: [p for p in tiny.processes_of(folder) if p.status() == psutil.STATUS_STOPPED])
    assert stopped, "the fault never happened"
    parent.kill()
    parent.wait()
    assert tiny.wait_for(lambda: not tiny.processes_of(folder), seconds=10)
