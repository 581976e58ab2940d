"""A small data set in the published IDX layout, and experiments on it, run as a person runs them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from idx_files import write_set

from escala.run.campaign import mark_of
from escala.run.launch import CAMPAIGN_VARIABLE

SUPPORT = Path(__file__).parent


def write_images(folder: Path, train: int = 600, test: int = 200) -> Path:
    """Ten noisy patterns: learnable, and quick to read."""
    drawn = np.random.default_rng(3)
    ideal = drawn.integers(0, 180, (10, 28, 28))
    content = dict[str, Any]()
    for part, rows in (("train", train), ("t10k", test)):
        labels = drawn.integers(0, 10, rows)
        images = ideal[labels] + drawn.integers(0, 70, (rows, 28, 28))
        content[f"{part}-images-idx3-ubyte"] = images.astype(np.uint8)
        content[f"{part}-labels-idx1-ubyte"] = labels.astype(np.uint8)
    return write_set(folder, content)


def environment(cache: Path, **more: str) -> dict[str, str]:
    """This process's variables, with the tests' modules importable and a cache of their own."""
    launcher = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    kept = {name: value for name, value in os.environ.items() if name not in launcher}
    return {**kept, "PYTHONPATH": str(SUPPORT), "ESCALA_CACHE": str(cache), "COLUMNS": "200", **more}


def escala(words: Sequence[str], env: dict[str, str], **options: Any) -> subprocess.CompletedProcess[str]:
    """`escala WORDS` as a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "escala", *words], env=env, capture_output=True, text=True, timeout=600, **options
    )


def records(folder: Path) -> list[dict[str, Any]]:
    """Raw lines of the log, as any JSON reader sees them."""
    path = folder / "records.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def processes_of(folder: Path) -> list[psutil.Process]:
    """Live seats of the campaign in `folder`; a zombie is dead."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE and (
                process.environ().get(CAMPAIGN_VARIABLE) == mark_of(folder)
            ):
                found.append(process)
    return found


def wait_for(what: Callable[[], Any], seconds: float = 120) -> Any:
    """The first true answer of `what`, or the last one when time is up."""
    until = time.monotonic() + seconds
    while not (found := what()) and time.monotonic() < until:
        time.sleep(0.02)
    return found
