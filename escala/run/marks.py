"""A page that a worker shares with its parent: steps done, heart-beats, and whether it is asked to stop."""

from __future__ import annotations

import mmap
import threading
import time
from pathlib import Path

MARK_BYTES = 24
BEAT_S = 0.5


class Marks:
    """A page shared with the parent: steps done, heart-beats, a wish. Survives however this process ends."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._page = mmap.mmap(file.fileno(), MARK_BYTES)
        self._cells = memoryview(self._page).cast("q")

    def step(self, number: int) -> None:
        """Note that a step was queued."""
        self._cells[0] = number

    def read(self) -> tuple[int, int]:
        """Steps done and heart-beats so far."""
        return self._cells[0], self._cells[1]

    def ask_to_stop(self) -> None:
        """The parent's wish that the seat keep what it has and stop."""
        self._cells[2] = 1

    def asked_to_stop(self) -> bool:
        """Whether the parent wished so."""
        return bool(self._cells[2])

    def start_beating(self) -> None:
        """Count heart-beats from a thread, so that a process which is stopped falls silent."""
        threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def _beat(self) -> None:
        while True:
            self._cells[1] += 1
            time.sleep(BEAT_S)


def new_marks(path: Path) -> Marks:
    """A fresh page for a worker that is about to start."""
    path.write_bytes(bytes(MARK_BYTES))
    return Marks(path)
