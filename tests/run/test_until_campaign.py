"""A campaign of real processes with a score to reach."""

from __future__ import annotations

import json
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
epochs = 12
lr = 0.006
until = 0.79
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
simulate = true
[measure]
repeats = 1
cooldown_s = 0
"""


def test_all_seats_stop_together_at_the_epoch_where_one_would(
    tmp_path: Path, images: Path, env: dict[str, str]
) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(images=images))
    words = ["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "c"), "--quiet"]
    ended = tiny.escala(words, env)
    assert ended.returncode == 0, ended.stderr
    single, ddp = sorted(tiny.records(tmp_path / "c"), key=lambda record: len(record["trial"]["seats"]))
    for record in (single, ddp):
        scores = [epoch["score"] for epoch in record["epochs"]]
        assert 1 < len(scores) < 12, "the test tells nothing where the first or no epoch reaches the score"
        assert scores[-1] >= 0.79 > max(scores[:-1])
        found = record["to_score"]
        assert (found["reached"], found["epochs"], found["steps"]) == (True, len(scores), record["steps"])
        assert found["total_s"] == pytest.approx(record["phases"]["train_s"] + record["phases"]["validation_s"])
        assert record["score"]["samples"] == 200
    assert len(single["epochs"]) == len(ddp["epochs"])
    report = json.loads(tiny.escala(["report", str(tmp_path / "c"), "--format", "json"], env).stdout)
    assert [(row["reached"], row["tried"], "other work" in row["doubts"]) for row in report["summaries"]] == [
        (1, 1, False),
        (1, 1, False),
    ]
    # A later look may allow more or less; nothing runs again for it.
    again = tiny.escala([*words, "--set", "measure.tolerance=0.05", "--json"], env)
    assert again.returncode == 0, again.stderr
    assert [row["tolerance"] for row in json.loads(again.stdout)["summaries"]] == [0.05, 0.05]
    assert len(tiny.records(tmp_path / "c")) == 2
    beyond = tiny.escala(["plan", str(tmp_path / "e.toml"), "--set", "train.until=1.5"], env)
    assert beyond.returncode == 2
    assert "error[CFG-RANGE] strategy single: train.until = 1.5 is no accuracy to train until" in beyond.stderr
