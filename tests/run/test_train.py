"""Trainings that are stopped, killed and gone on with."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

from escala.plan.read import parse
from escala.run.train import chosen
from escala.store.checkpoint import MODEL, name_of
from escala.terms.errors import EscalaError

pytestmark = pytest.mark.slow

EXPERIMENT = """
[workload]
name = "killing:network"
data = "{images}"
options = {options}
[train]
batch = {batch}
epochs = {epochs}
momentum = 0.9
lr = 0.0001
[[strategy]]
name = "single"
device = "cpu"
label = "one"
[[strategy]]
name = "ddp"
device = "cpu"
ways = 2
label = "two"
"""


@pytest.fixture(scope="module")
def more_images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.write_images(tmp_path_factory.mktemp("more"), train=6000)


@pytest.fixture(scope="module")
def many_images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As many as make an epoch of batch 2 last for many blocks: at their edges a training says where it is and hears
    that it should stop."""
    return tiny.write_images(tmp_path_factory.mktemp("many"), train=24_000)


def write(
    folder: Path, images: Path, strategy: str = "one", *, options: str = "{}", epochs: int = 2, batch: int = 64
) -> list[str]:
    """The words of a training."""
    folder.mkdir(exist_ok=True)
    text = EXPERIMENT.format(images=images, options=options, epochs=epochs, batch=batch)
    (folder / "e.toml").write_text(text)
    return ["train", str(folder / "e.toml"), "--out", str(folder / "c"), "--strategy", strategy]


def on_one_core() -> None:
    """Threads of one seat that wait for each other on a busy machine take a hundred times as long."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])


def on_two_cores() -> None:
    """One for each of two seats, whatever the machine has."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:2])


def stop(
    words: list[str], env: dict[str, str], after_s: float, *, in_training: bool, **options: Any
) -> tuple[int, str]:
    """SIGTERM so long after its start, or after its first steps; exit code and what it said."""
    command = [sys.executable, "-m", "escala", *words]
    parent = subprocess.Popen(command, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)
    assert parent.stderr is not None
    told = ""
    if in_training:
        for line in parent.stderr:
            told += line
            if "  train, " in line:
                break
    time.sleep(after_s)
    parent.send_signal(signal.SIGTERM)
    _, rest = parent.communicate(timeout=60)
    return parent.returncode, told + rest


def newest_step(folder: Path) -> int:
    found = [int(path.name[5:]) for path in (folder / "checkpoints").glob("step-*")]
    return max(found, default=0)


def curve(folder: Path) -> dict[str, Any]:
    record = tiny.records(folder)[-1]
    assert record["outcome"] == "done"
    return {key: record[key] for key in ("losses", "score", "steps")} | {
        "orders": [epoch["order"] for epoch in record["epochs"]],
        "scores": [epoch["score"] for epoch in record["epochs"]],
    }


def test_ten_sigterms_end_with_the_twins_weights(tmp_path: Path, many_images: Path, env: dict[str, str]) -> None:
    twin, cut = tmp_path / "twin", tmp_path / "cut"
    course: dict[str, Any] = {"epochs": 3, "batch": 2}
    per_epoch = 11_000
    assert tiny.escala(write(twin, many_images, **course), env, preexec_fn=on_one_core).returncode == 0
    words = write(cut, many_images, **course)
    moments = random.Random(10)
    steps = [0]
    for number in range(10):
        # Some before the first step, where there is nothing to keep; most in training, in mid-epoch.
        in_training = number % 3 != 1
        moment = moments.uniform(0, 0.35 if in_training else 2.0)
        code, told = stop([*words, "--resume"], env, moment, in_training=in_training, preexec_fn=on_one_core)
        # Before a process has begun to listen, the signal ends it as it ends any other.
        unborn = code == -signal.SIGTERM and not told
        assert unborn or (code, "interrupted; the same command with --resume goes on" in told) == (75, True), told
        assert not tiny.processes_of(cut / "c"), "seats outlived their parent"
        steps.append(newest_step(cut / "c"))
    assert steps == sorted(steps), "a stop lost steps"
    assert len(set(steps)) > 5, "most stops came too early to show anything"
    assert any(step % per_epoch for step in steps), "no stop came in mid-epoch"
    last = tiny.escala([*words, "--resume"], env, preexec_fn=on_one_core)
    assert last.returncode == 0, last.stderr
    assert f"goes on after step {steps[-1]} " in last.stderr
    assert curve(cut / "c") == curve(twin / "c")
    assert (cut / "c" / MODEL).read_bytes() == (twin / "c" / MODEL).read_bytes()
    # Its folder is one to report on, and the end stays the end.
    assert "killing:network" in tiny.escala(["report", str(cut / "c")], env).stdout
    again = tiny.escala([*words, "--resume", "--json"], env, preexec_fn=on_one_core)
    assert (again.returncode, json.loads(again.stdout)["steps"]) == (0, 3 * per_epoch)


def test_two_seats_that_are_stopped_again_and_again_end_with_the_twins_weights(
    tmp_path: Path, many_images: Path, env: dict[str, str]
) -> None:
    """With dropout drawn by each seat for itself, so that the random numbers of both must go on, too."""
    twin, cut = tmp_path / "twin", tmp_path / "cut"
    # One epoch, so that a stop before its end is one in mid-epoch, however many steps make a block.
    course: dict[str, Any] = {"epochs": 1, "batch": 4}
    per_epoch = 5500
    ended = tiny.escala(write(twin, many_images, "two", **course), env, preexec_fn=on_two_cores)
    assert ended.returncode == 0, ended.stderr
    words = [*write(cut, many_images, "two", **course), "--resume"]
    moments = random.Random(4)
    steps = list[int]()
    for _ in range(3):
        code, told = stop(words, env, moments.uniform(0, 0.1), in_training=True, preexec_fn=on_two_cores)
        if code == 0:
            break  # A fast machine reaches the end before the last stop.
        assert (code, "interrupted; the same command with --resume goes on" in told) == (75, True), told
        steps.append(newest_step(cut / "c"))
    assert not tiny.processes_of(cut / "c"), "seats outlived their parent"
    assert steps == sorted(steps), "a stop lost steps"
    assert any(step % per_epoch for step in steps), "no stop came in mid-epoch"
    last = tiny.escala(words, env, preexec_fn=on_two_cores)
    assert last.returncode == 0, last.stderr
    assert curve(cut / "c") == curve(twin / "c")
    assert (cut / "c" / MODEL).read_bytes() == (twin / "c" / MODEL).read_bytes()


def test_two_seats_go_on_after_sigterms_and_one_can_end_it(
    tmp_path: Path, more_images: Path, env: dict[str, str]
) -> None:
    twin, cut = tmp_path / "twin", tmp_path / "cut"
    options = "{ dropout = 0.0 }"
    assert tiny.escala(write(twin, more_images, "two", options=options, epochs=4, batch=8), env).returncode == 0
    words = write(cut, more_images, "two", options=options, epochs=4, batch=8)
    for _ in range(2):
        code, told = stop([*words, "--resume"], env, 0.1, in_training=True)
        assert code == 75, told
    assert newest_step(cut / "c") > 0
    unasked = tiny.escala(words, env)
    assert unasked.returncode == 2
    assert "CFG-RESUME" in unasked.stderr
    assert "--resume" in unasked.stderr
    mixed = tiny.escala(["run", words[1], "--out", str(cut / "c")], env)
    assert (mixed.returncode, "holds a training of escala train" in mixed.stderr) == (2, True), mixed.stderr
    last = tiny.escala([*write(cut, more_images, "one", options=options, epochs=4, batch=8), "--resume"], env)
    assert last.returncode == 0, last.stderr
    assert "made by ddp with 2 seats, this has 1 seat: same rows, but random numbers (dropout)" in last.stderr
    one, other = curve(cut / "c"), curve(twin / "c")
    assert one["orders"] == other["orders"]
    np.testing.assert_allclose(one["losses"][:200], other["losses"][:200], rtol=1e-4)
    assert len(one["losses"]) == 4 * 688


@pytest.mark.parametrize("strategy", ["one", "two"])
def test_a_seat_killed_while_it_saves_is_told_and_the_previous_is_used(
    tmp_path: Path, images: Path, env: dict[str, str], strategy: str
) -> None:
    options = f'{{ whom = "last seat", once = "{tmp_path}/once" }}'
    words = write(tmp_path, images, strategy, options=options, epochs=4)
    began = time.monotonic()
    ended = tiny.escala(words, env)
    assert ended.returncode == 5, ended.stderr
    assert time.monotonic() - began < 20
    assert not tiny.processes_of(tmp_path / "c")
    (record,) = tiny.records(tmp_path / "c")
    assert (record["outcome"], "killed by SIGKILL at step" in record["reason"]) == ("failed", True)
    assert ("rank 1" in record["reason"]) is (strategy == "two")
    assert newest_step(tmp_path / "c") == 9
    last = tiny.escala([*words, "--resume"], env)
    assert last.returncode == 0, last.stderr
    assert "goes on after step 9 " in last.stderr
    assert len(curve(tmp_path / "c")["losses"]) == 36


def test_a_parent_killed_while_a_checkpoint_is_written_loses_that_one_alone(
    tmp_path: Path, images: Path, env: dict[str, str]
) -> None:
    # The seat dies with its parent, on a busy machine sometimes before it has written anything.
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        options = f'{{ whom = "parent", once = "{folder}/once" }}'
        words = write(folder, images, options=options, epochs=4)
        assert tiny.escala(words, env).returncode == -signal.SIGKILL
        assert (folder / "once").exists()
        assert tiny.wait_for(lambda gone=folder / "c": not tiny.processes_of(gone), seconds=10)
        if len(os.listdir(folder / "c" / "checkpoints")) == 2:
            break
    else:
        pytest.fail("nothing was half written, so this shows nothing")
    last = tiny.escala([*words, "--resume"], env)
    assert last.returncode == 0, last.stderr
    assert "goes on after step 9 " in last.stderr
    assert len(curve(folder / "c")["losses"]) == 36
    kept = sorted(os.listdir(folder / "c" / "checkpoints"))
    assert kept == [name_of(27), name_of(36)]


def test_damage_pickles_and_a_disk_that_refuses(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    words = write(tmp_path, images, epochs=2)
    limit = 20_000

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    small = tiny.escala(words, env, preexec_fn=limited)
    assert small.returncode == 4, small.stderr
    assert "ENV-DISK" in small.stderr
    assert "bytes needed" in small.stderr
    assert not list((tmp_path / "c" / "checkpoints").iterdir())
    assert tiny.escala(words, env).returncode == 0
    (tmp_path / "c" / "checkpoints" / name_of(18) / MODEL).write_bytes(b"cut")
    damaged = tiny.escala([*words, "--resume"], env)
    assert damaged.returncode == 0, damaged.stderr
    assert f"checkpoint {name_of(18)} is damaged" in damaged.stderr
    assert "goes on after step 9 " in damaged.stderr
    (tmp_path / "c" / "checkpoints" / "other.pt").write_bytes(b"anything")
    planted = tiny.escala([*words, "--resume"], env)
    assert (planted.returncode, "error[SEC-PICKLE]" in planted.stderr) == (7, True), planted.stderr


def test_the_strategy_to_train_must_be_plain() -> None:
    text = EXPERIMENT.format(images="x", options="{}", epochs=1, batch=64)
    experiment = parse(text, "here").experiment
    assert chosen(experiment, "two").ways == 2
    for label in (None, "three"):
        with pytest.raises(EscalaError, match=r"CFG-STRATEGY.*--strategy 'one' \| 'two'"):
            chosen(experiment, label)
    swept = parse(text + '[sweep]\n"train.lr" = [0.1, 0.2]\n', "here").experiment
    with pytest.raises(EscalaError, match=r"CFG-STRATEGY.*2 points"):
        chosen(swept, "one")


def test_a_campaigns_folder_and_a_file_are_no_place_to_train_in(tmp_path: Path, env: dict[str, str]) -> None:
    weights = tmp_path / "weights.pt"
    weights.write_bytes(b"PK\x03\x04")
    ended = tiny.escala(["train", "quickstart", "--strategy", "single", "--out", str(weights)], env)
    assert (ended.returncode, "error[SEC-PICKLE]" in ended.stderr) == (7, True), ended.stderr
    launched = tiny.escala(
        ["train", "quickstart"],
        {**env, "RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "localhost", "MASTER_PORT": "29500"},
    )
    assert (launched.returncode, "error[ENV-LAUNCHER]" in launched.stderr) == (4, True), launched.stderr
