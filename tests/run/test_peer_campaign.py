"""Peers in a campaign: the same work and the same losses, timed by the same clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny

from escala.peers import PEERS, missing

pytestmark = pytest.mark.slow

TEXT = """
[workload]
name = "mlp"
data = "{images}"
options = {{ dropout = 0.0, hidden = [24], activation = "sigmoid" }}
[train]
batch = 64
epochs = 2
lr = {lr}
[[strategy]]
name = "single"
{peers}
[measure]
repeats = 1
cooldown_s = 0
meters = ["memory"]
"""


def ran(folder: Path, images: Path, env: dict[str, str], peers: list[str], lr: float = 0.2) -> dict[str, Any]:
    """Records by label."""
    rows = "".join(f'[[strategy]]\nname = "single"\npeer = "{name}"\n' for name in peers)
    (folder / "e.toml").write_text(TEXT.format(images=images, peers=rows, lr=lr))
    ended = tiny.escala(["run", str(folder / "e.toml"), "--out", str(folder / "c"), "--quiet"], env)
    assert ended.returncode in (0, 5), ended.stderr
    (folder / "table.txt").write_text(ended.stdout)
    return {record["trial"]["label"]: record for record in tiny.records(folder / "c")}


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_is_a_row_like_any_other(name: str, tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    if lacking := missing(name):
        pytest.skip(f"needs the package {' and '.join(lacking)}: make test-peers")
    found = ran(tmp_path, images, env, [name])
    single, peer = found["single"], found[name]
    assert (single["outcome"], peer["outcome"]) == ("done", "done"), peer["reason"]
    assert len(peer["losses"]) == peer["steps"] == single["steps"] == 2 * 9
    np.testing.assert_allclose(peer["losses"], single["losses"], rtol=1e-4)
    assert [epoch["order"] for epoch in peer["epochs"]] == [epoch["order"] for epoch in single["epochs"]]
    for own, other in zip(peer["epochs"], single["epochs"], strict=True):
        assert own["loss"] == pytest.approx(other["loss"], rel=1e-4)
        assert own["score"] == other["score"]
        assert own["train_s"] > 0
    assert peer["score"] == single["score"]
    assert peer["phases"]["train_s"] == pytest.approx(sum(epoch["train_s"] for epoch in peer["epochs"]))
    assert peer["phases"]["test_s"] > 0
    assert peer["parameters"] == single["parameters"]
    assert peer["memory_bytes"]["cpu"] > 0
    assert int(peer["software"]["lines of user code"]) > 5
    assert "lines of user code" not in single["software"]
    assert set(PEERS[name].packages) <= peer["software"].keys()
    table = (tmp_path / "table.txt").read_text()
    assert "lines" in table
    assert "a training loop that its user writes" in table


def test_a_rate_that_is_too_large_is_divergence(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    found = ran(tmp_path, images, env, ["plain"], lr=1e38)
    single, peer = found["single"], found["plain"]
    assert (single["outcome"], peer["outcome"]) == ("diverged", "diverged")
    assert peer["reason"] == single["reason"]
    assert len(peer["losses"]) == len(single["losses"])
