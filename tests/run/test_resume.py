"""Campaigns that are killed, stopped and gone on with."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
import tiny

pytestmark = pytest.mark.slow

EXPERIMENT = """
[workload]
name = "mlp"
data = "{images}"
[train]
batch = 64
epochs = 1
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
[measure]
repeats = {repeats}
cooldown_s = 0
"""


def write(folder: Path, images: Path, repeats: int = 3) -> list[str]:
    """The words of a run of the experiment."""
    (folder / "e.toml").write_text(EXPERIMENT.format(images=images, repeats=repeats))
    return ["run", str(folder / "e.toml"), "--out", str(folder / "c"), "--quiet"]


def start(words: list[str], env: dict[str, str]) -> subprocess.Popen[str]:
    # What a shell starts in the background ignores interrupts, and so would its children.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.Popen(
        [sys.executable, "-m", "escala", *words], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def settled(folder: Path) -> dict[str, Any]:
    """What must not depend on interruptions, by trial: outcome, losses, score and order of rows."""
    return {
        record["id"]: (record["losses"], record["score"], [epoch["order"] for epoch in record["epochs"]])
        for record in tiny.records(folder)
        if record["outcome"] == "done"
    }


def test_twenty_kills_lose_and_repeat_nothing(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    twin, cut = tmp_path / "twin", tmp_path / "cut"
    twin.mkdir()
    cut.mkdir()
    assert tiny.escala(write(twin, images), env).returncode == 0
    words = write(cut, images)
    moments = random.Random(20)
    kills = 0
    while kills < 20:
        parent = start(words, env)
        # Looking at the machine and a trial take about two seconds each: moments fall before, in and between trials,
        # and, so that there is something left to kill, before the end of the last one.
        latest = 4.5 if len(tiny.records(cut / "c")) < 5 else 1.5
        try:
            parent.communicate(timeout=moments.uniform(0.3, latest))
        except subprocess.TimeoutExpired:
            parent.kill()
            parent.communicate()
            kills += 1
        assert tiny.wait_for(lambda: not tiny.processes_of(cut / "c"), seconds=10), "seats outlived their parent"
        assert len(tiny.records(cut / "c")) < 6, f"the campaign ended after {kills} kills"
    last = tiny.escala(words, env)
    assert last.returncode == 0, last.stderr
    ids = [record["id"] for record in tiny.records(cut / "c")]
    assert len(ids) == len(set(ids)) == 6
    assert settled(cut / "c") == settled(twin / "c")


@pytest.mark.parametrize(
    ("number", "code", "reason"),
    [(signal.SIGTERM, 75, "terminated"), (signal.SIGINT, 130, "keyboard")],
)
def test_a_signal_ends_the_seats_and_the_same_command_goes_on(
    tmp_path: Path, images: Path, env: dict[str, str], number: signal.Signals, code: int, reason: str
) -> None:
    words = write(tmp_path, images, repeats=1)
    parent = start(words, env)
    assert tiny.wait_for(lambda: tiny.processes_of(tmp_path / "c"))
    os.kill(parent.pid, number)
    _, told = parent.communicate(timeout=60)
    assert parent.returncode == code, told
    assert "the same command goes on" in told
    assert tiny.processes_of(tmp_path / "c") == []
    assert [(r["outcome"], r["reason"]) for r in tiny.records(tmp_path / "c")][-1] == ("interrupted", reason)
    assert tiny.escala(words, env).returncode == 0
    assert sorted(settled(tmp_path / "c")) == sorted({record["id"] for record in tiny.records(tmp_path / "c")})


def test_a_second_start_is_refused_and_names_the_first(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    words = write(tmp_path, images, repeats=1)
    first = start(words, env)
    assert tiny.wait_for(lambda: (tmp_path / "c" / "lock").exists() and (tmp_path / "c" / "lock").read_text())
    second = tiny.escala(words, env)
    assert second.returncode == 4
    assert "error[ENV-LOCK]" in second.stderr
    assert str(first.pid) in second.stderr
    first.kill()
    first.communicate()
    third = tiny.escala([word for word in words if word != "--quiet"], env)
    assert third.returncode == 0, third.stderr
    assert "lock" in third.stderr  # the dead owner's lock was taken over with a note


def test_more_repeats_are_added_and_another_experiment_is_refused(
    tmp_path: Path, images: Path, env: dict[str, str]
) -> None:
    assert tiny.escala(write(tmp_path, images, repeats=1), env).returncode == 0
    before = (tmp_path / "c" / "records.jsonl").read_bytes()
    assert tiny.escala(write(tmp_path, images, repeats=2), env).returncode == 0
    after = (tmp_path / "c" / "records.jsonl").read_bytes()
    assert after.startswith(before)
    assert len(tiny.records(tmp_path / "c")) == 4
    other = tiny.escala([*write(tmp_path, images), "--set", "train.batch=32"], env)
    assert other.returncode == 2
    assert "error[CFG-CAMPAIGN]" in other.stderr
    assert "train.batch" in other.stderr


def test_a_cut_record_runs_again_and_a_changed_one_is_refused(
    tmp_path: Path, images: Path, env: dict[str, str]
) -> None:
    words = write(tmp_path, images, repeats=1)
    assert tiny.escala(words, env).returncode == 0
    log = tmp_path / "c" / "records.jsonl"
    whole = log.read_bytes()
    results = settled(tmp_path / "c")
    log.write_bytes(whole[:-40])
    again = tiny.escala([word for word in words if word != "--quiet"], env)
    assert again.returncode == 0, again.stderr
    assert "set aside" in again.stderr
    assert settled(tmp_path / "c") == results
    log.write_bytes(whole[:200] + b"#" + whole[201:])
    for command in (words, ["report", str(tmp_path / "c")]):
        refused = tiny.escala(command, env)
        assert refused.returncode == 6
        assert "error[RES-CORRUPT]" in refused.stderr
    repaired = tiny.escala([*words, "--repair"], env)
    assert repaired.returncode == 0, repaired.stderr
    assert settled(tmp_path / "c") == results


def test_a_full_disk_stops_cleanly_and_the_campaign_goes_on_afterwards(
    tmp_path: Path, images: Path, env: dict[str, str]
) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(small)], check=False).returncode:
        pytest.skip("mounting a small file system is not allowed here")
    try:
        words = write(tmp_path, images, repeats=2)
        words[3] = str(small / "c")
        (small / "filler").write_bytes(bytes(44_000))
        full = tiny.escala(words, env)
        assert full.returncode == 4, full.stderr
        assert "error[ENV-DISK]" in full.stderr
        assert "free" in full.stderr
        before = {path: path.read_bytes() for path in (small / "c").glob("*.json*")}
        assert before
        subprocess.run(["mount", "-o", "remount,size=4m", str(small)], check=True)
        assert tiny.escala(words, env).returncode == 0
        for path, data in before.items():
            assert path.read_bytes().startswith(data), f"{path.name} was harmed"
        assert len(settled(small / "c")) == 4
    finally:
        for process in psutil.Process().children(recursive=True):
            process.kill()
        subprocess.run(["umount", str(small)], check=True)
