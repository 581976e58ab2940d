"""How many cores this process may use: affinity and the control group's quota, not what the machine has."""

from __future__ import annotations

import math
import os
from pathlib import Path


def usable_cores(cgroup: Path = Path("/sys/fs/cgroup"), membership: Path = Path("/proc/self/cgroup")) -> int:
    """At least 1. A quota of one and a half cores counts as one."""
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.floor(min(affinity, _quota(cgroup, membership))))


def _quota(cgroup: Path, membership: Path) -> float:
    """Cores by quota: the tightest on the way from this process's group to the root; infinite without one."""
    tightest = math.inf
    group = _own_group(membership)
    for folder in [cgroup / group, *(cgroup / parent for parent in Path(group).parents)]:
        limit, period = _read(folder / "cpu.max") or _read_v1(folder / "cpu")
        if limit.isdigit() and period.isdigit() and int(limit) > 0:
            tightest = min(tightest, int(limit) / int(period))
    return tightest


def _own_group(membership: Path) -> str:
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return ""
    unified = [line.split("::", 1)[1] for line in lines if line.startswith("0::")]
    return unified[0].strip("/") if unified else ""


def _read(file: Path) -> tuple[str, str] | None:
    try:
        limit, period = file.read_text().split()
    except (OSError, ValueError):
        return None
    return limit, period


def _read_v1(folder: Path) -> tuple[str, str]:
    try:
        return (folder / "cpu.cfs_quota_us").read_text().strip(), (folder / "cpu.cfs_period_us").read_text().strip()
    except OSError:
        return "max", "1"
