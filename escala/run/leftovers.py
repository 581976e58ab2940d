"""Processes of an earlier start of the same campaign that may still be alive."""

from __future__ import annotations

import contextlib

import psutil

from escala.run.launch import CAMPAIGN_VARIABLE


def sweep(campaign: str) -> tuple[int, ...]:
    """Kill seats that carry this campaign's mark; their process numbers. A zombie counts as dead."""
    swept = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.uids().real != psutil.Process().uids().real or process.status() == psutil.STATUS_ZOMBIE:
                continue
            if process.environ().get(CAMPAIGN_VARIABLE) == campaign and process.pid != psutil.Process().pid:
                process.kill()
                process.wait(5)
                swept.append(process.pid)
    return tuple(swept)
