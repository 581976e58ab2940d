"""A launcher's processes: torchrun starts them, escala takes the seats."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

pytestmark = pytest.mark.slow

EXPERIMENT = """
[workload]
name = "mlp"
data = "{images}"
options = {{ dropout = 0.0 }}
[train]
batch = 64
epochs = 1
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
[measure]
repeats = 1
cooldown_s = 0
"""


def launch(folder: Path, env: dict[str, str], processes: int = 2) -> subprocess.CompletedProcess[str]:
    words = ["--nproc-per-node", str(processes), "--standalone", "--local-addr", "127.0.0.1", "-m", "escala"]
    return subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *words, "run", "e.toml", "--out", "c"],
        env=env,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_world_size_chooses_the_trials(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(images=images))
    ended = launch(tmp_path, env)
    assert ended.returncode == 0, ended.stderr
    assert "left out, as they do not have 2 seats: single" in ended.stderr
    (record,) = tiny.records(tmp_path / "c")
    assert (record["trial"]["label"], record["outcome"]) == ("ddp x2", "done")
    assert "shared process" in record["doubts"]
    assert record["score"]["samples"] == 200
    # Started by escala itself the same campaign goes on with the rest; the launcher's record stays.
    rest = tiny.escala(["run", "e.toml", "--out", "c", "--quiet"], env, cwd=tmp_path)
    assert rest.returncode == 0, rest.stderr
    single = next(record for record in tiny.records(tmp_path / "c") if record["trial"]["label"] == "single")
    assert len(tiny.records(tmp_path / "c")) == 2
    assert single["losses"] == pytest.approx(record["losses"], rel=1e-5)


def test_a_fault_under_a_launcher_is_recorded(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    text = (
        EXPERIMENT.format(images=images)
        .replace('"mlp"', '"faulty:network"')
        .replace("dropout = 0.0", 'fault = "raise"')
    )
    (tmp_path / "e.toml").write_text(text)
    ended = launch(tmp_path, env)
    assert ended.returncode != 0
    (record,) = tiny.records(tmp_path / "c")
    assert record["outcome"] == "failed"
    assert "rank 1: ValueError: planted in the network" in record["reason"]


def alone(folder: Path, env: dict[str, str], **variables: str) -> subprocess.CompletedProcess[str]:
    """One process of a launcher that set these variables."""
    place = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29777"}
    return tiny.escala(["run", "e.toml", "--out", "c"], {**env, **place, **variables}, cwd=folder)


def test_a_port_that_is_taken_is_named_with_its_holder(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(images=images))
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = str(held.getsockname()[1])
        ended = alone(tmp_path, env, MASTER_PORT=port)
    assert ended.returncode == 4
    assert "error[ENV-PORT]" in ended.stderr
    assert port in ended.stderr
    assert "python" in ended.stderr


def test_an_unknown_host_is_named_at_once(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(images=images))
    ended = alone(tmp_path, env, MASTER_ADDR="no-such-host.invalid")
    assert ended.returncode == 4
    assert "error[ENV-ADDR] MASTER_ADDR=no-such-host.invalid" in ended.stderr


def test_half_an_environment_is_refused(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(images=images))
    ended = tiny.escala(["run", "e.toml", "--out", "c"], {**env, "RANK": "0"}, cwd=tmp_path)
    assert ended.returncode == 4
    assert "error[ENV-LAUNCHER]" in ended.stderr
