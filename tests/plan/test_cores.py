from __future__ import annotations

import os
from pathlib import Path

import pytest

from escala.plan.cores import usable_cores

AFFINITY = len(os.sched_getaffinity(0))


def groups(tmp_path: Path, own: str, quotas: dict[str, str]) -> tuple[Path, Path]:
    """A control-group tree in which each folder of `quotas` has that `cpu.max`, and a membership file."""
    root = tmp_path / "cgroup"
    for folder, quota in quotas.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        (root / folder / "cpu.max").write_text(quota)
    membership = tmp_path / "membership"
    membership.write_text(f"0::/{own}\n")
    return root, membership


def test_without_a_quota_affinity_decides(tmp_path: Path) -> None:
    assert usable_cores(*groups(tmp_path, "a", {"a": "max 100000"})) == AFFINITY
    assert usable_cores(tmp_path / "none", tmp_path / "none") == AFFINITY


@pytest.mark.parametrize(("quota", "cores"), [("100000 100000", 1), ("150000 100000", 1), ("20000 100000", 1)])
def test_a_quota_is_rounded_down_but_never_to_nothing(tmp_path: Path, quota: str, cores: int) -> None:
    assert usable_cores(*groups(tmp_path, "a", {"a": quota})) == cores


def test_the_tightest_quota_on_the_way_to_the_root_decides(tmp_path: Path) -> None:
    tree = groups(tmp_path, "a/b", {"a": "100000 100000", "a/b": "900000 100000"})
    assert usable_cores(*tree) == 1


def test_the_older_layout_is_read_too(tmp_path: Path) -> None:
    (tmp_path / "cgroup" / "cpu").mkdir(parents=True)
    (tmp_path / "cgroup" / "cpu" / "cpu.cfs_quota_us").write_text("100000\n")
    (tmp_path / "cgroup" / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_cores(tmp_path / "cgroup", tmp_path / "none") == 1


def test_garbage_is_no_quota(tmp_path: Path) -> None:
    assert usable_cores(*groups(tmp_path, "a", {"a": "what is this"})) == AFFINITY
