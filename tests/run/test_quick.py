"""The quick form of an experiment, run as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tiny

pytestmark = pytest.mark.slow

TEXT = """
[workload]
name = "mlp"
data = "{images}"
[train]
batch = 64
epochs = 2
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
[measure]
repeats = 3
cooldown_s = 0
[[case]]
name = "plain"
set = {{ "train.lr" = 0.1 }}
[[case]]
name = "short"
set = {{ "train.lr" = 0.2 }}
quick = {{ "workload.limit" = 128 }}
[quick]
train.epochs = 1
measure.repeats = 1
[source]
work = "a paper"
[[published]]
row = "ddp x2"
case = "short"
figure = "speed-up, training"
value = 1.9
unit = "x"
[[published]]
row = "single"
figure = "energy"
value = 9
unit = "J"
"""


def test_the_quick_form_runs_every_case_and_is_no_other_campaign(
    tmp_path: Path, images: Path, env: dict[str, str]
) -> None:
    (tmp_path / "e.toml").write_text(TEXT.format(images=images))
    words = ["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "c"), "--quiet"]
    ended = tiny.escala([*words, "--quick"], env)
    assert ended.returncode == 0, ended.stderr
    assert "Published beside measured" in ended.stdout
    assert "the quick form" in ended.stdout
    ran = [
        (record["trial"]["point"]["case"], record["trial"]["label"], record["data"]["rows"]["train"])
        for record in tiny.records(tmp_path / "c")
    ]
    assert sorted(ran) == [
        ("plain", "ddp x2", 550),
        ("plain", "single", 550),
        ("short", "ddp x2", 128),
        ("short", "single", 128),
    ]
    refused = tiny.escala(words, env)
    assert refused.returncode == 2
    assert "error[CFG-CAMPAIGN]" in refused.stderr
    assert "give --quick" in refused.stderr
    report = tiny.escala(["report", str(tmp_path / "c"), "--json", "--epochs"], env)
    found = json.loads(report.stdout)
    assert [(row["label"], row["point"]["case"]) for row in found["summaries"]] == [
        ("single", "plain"),
        ("ddp x2", "plain"),
        ("single", "short"),
        ("ddp x2", "short"),
    ]
    measured = [figure["measured"] is not None for figure in found["published"]["figures"]]
    assert measured == [True, False, False]
    assert [row["number"] for row in found["epochs"]] == [1, 1, 1, 1]
