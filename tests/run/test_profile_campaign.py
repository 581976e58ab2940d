"""A campaign of real processes that also looks at where the time of a step goes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

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
name = "ddp"
ways = 2
simulate = true
[measure]
repeats = 1
cooldown_s = 0
profile = "trace"
"""


def test_one_more_run_tells_where_time_goes_and_counts_for_nothing_else(
    tmp_path: Path, images: Path, env: dict[str, str]
) -> None:
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(images=images))
    ended = tiny.escala(["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "c"), "--json"], env)
    assert ended.returncode == 0, ended.stderr
    usual, looked = tiny.records(tmp_path / "c")
    assert not usual.get("shares")
    assert looked["trial"]["role"] == "profile"
    assert looked["phases"] is None
    assert [seat["rank"] for seat in looked["shares"]] == [0, 1]
    for seat in looked["shares"]:
        assert seat["work"] + seat["exchange"] + seat["idle"] == pytest.approx(1)
        assert 0 < seat["work"] < 1
        # Two processes on gloo: something was exchanged, in the open or beside work.
        assert seat["exchange"] + seat["hidden"] > 0
    for name in looked["profile_traces"]:
        events = json.loads(gzip.decompress((tmp_path / "c" / name).read_bytes()))["traceEvents"]
        assert any("gloo" in event.get("name", "") for event in events)
    (row,) = json.loads(ended.stdout)["summaries"]
    assert row["outcomes"] == {"done": 1}
    assert 0 < row["time_shares"]["work"] < 1
    report = tiny.escala(["report", str(tmp_path / "c")], env)
    assert "Where the time of a step goes" in report.stdout
