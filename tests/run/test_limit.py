"""Less memory than there is: what fits, what does not, and what comes after."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import tiny

from escala.run.limit import limited
from escala.terms.errors import Unfit
from escala.terms.limits import limit_of

TAKES = """
import resource, sys
import torch
from escala.run.failure import failure_of
from escala.run.limit import limited

devices, gib, wanted = sys.argv[1].split(","), float(sys.argv[2]), int(sys.argv[3])
before = resource.getrlimit(resource.RLIMIT_DATA)
with limited(devices, {"cpu": gib}):
    try:
        torch.ones(wanted, dtype=torch.uint8)
        print("had")
    except RuntimeError as error:
        print(failure_of(error, devices).outcome)
assert resource.getrlimit(resource.RLIMIT_DATA) == before
torch.ones(wanted, dtype=torch.uint8)
"""

EXPERIMENT = """
[workload]
name = "mlp"
data = "{images}"
[workload.options]
hidden = [64]
[train]
batch = 64
steps = 5
[[strategy]]
name = "single"
[measure]
repeats = 1
cooldown_s = 0
memory_gib = {{ cpu = {gib} }}
"""


@pytest.mark.parametrize(
    ("devices", "gib", "mib", "outcome"),
    [
        ("cpu", 1.0, 200, "had"),
        ("cpu", 1.0, 900, "out of memory"),
        ("cpu,cpu", 0.75, 900, "had"),  # one process that stands for two devices
        ("cpu,cpu", 0.75, 1500, "out of memory"),
    ],
)
def test_a_process_runs_out_of_memory_at_its_limit_and_goes_on_without(
    devices: str, gib: float, mib: int, outcome: str
) -> None:
    command = [sys.executable, "-c", TAKES, devices, str(gib), str(mib * 2**20)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == outcome


def test_where_no_limit_is_given_nothing_is_limited() -> None:
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with limited(("cpu",), {"cuda": 1.0}):
        assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_what_cannot_be_limited_is_unfit_and_says_why() -> None:
    with pytest.raises(Unfit, match="cannot limit xpu:0"), limited(("xpu:0",), {"xpu": 1.0}):
        pass
    with pytest.raises(Unfit, match="the program alone takes"), limited(("cpu",), {"cpu": 0.001}):
        pass


def test_a_device_goes_by_its_own_limit_before_that_of_its_kind() -> None:
    limits = {"cuda": 8.0, "cuda:1": 4.0}
    assert limit_of("cuda:0", limits) == 8 * 2**30
    assert limit_of("cuda:1", limits) == 4 * 2**30
    assert limit_of("cpu", limits) is None


@pytest.mark.slow
def test_a_limited_campaign_says_so_beside_every_figure(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(images=images, gib=2))
    words = ["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "c"), "--quiet"]
    ended = tiny.escala(words, env)
    assert ended.returncode == 0, ended.stderr
    assert "less memory than they have" in ended.stdout
    (record,) = tiny.records(tmp_path / "c")
    assert record["trial"]["memory_gib"] == {"cpu": 2.0}
    assert "limited memory" in record["doubts"]
    plan = tiny.escala(["plan", str(tmp_path / "e.toml"), "--json"], env)
    assert json.loads(plan.stdout)[0]["id"] == record["trial"]["id"]
    # Another limit is another trial.
    plan = tiny.escala(["plan", str(tmp_path / "e.toml"), "--json", "--set", "measure.memory_gib.cpu=3"], env)
    assert json.loads(plan.stdout)[0]["id"] != record["trial"]["id"]


@pytest.mark.slow
def test_what_a_limit_cannot_be_of_is_refused(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(images=images, gib=2))
    for word, told in (("disk", "no part of a machine"), ("cpu:0", "no part of a machine")):
        ended = tiny.escala(["plan", str(tmp_path / "e.toml"), "--set", f'measure.memory_gib."{word}"=1'], env)
        assert ended.returncode == 2
        assert told in ended.stderr
    ended = tiny.escala(["plan", str(tmp_path / "e.toml"), "--set", "measure.memory_gib.cpu=0"], env)
    assert ended.returncode == 2
