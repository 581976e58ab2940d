"""Processes of several seats that train together, and what they tell."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any


def answers(sit: Callable[..., None], ways: int, *arguments: Any) -> list[Any]:
    """What each of `ways` processes sends, by rank; a text where one sent nothing, or tells what went wrong.

    They call `sit(rank, meeting, line, *arguments)`: `meeting` is a folder of their own, `line` to be sent to once.
    """
    spawn = get_context("spawn")
    with tempfile.TemporaryDirectory(prefix="escala-") as meeting:
        pipes = [spawn.Pipe(duplex=False) for _ in range(ways)]
        processes = [
            spawn.Process(target=sit, args=(rank, meeting, theirs, *arguments), daemon=True)
            for rank, (_, theirs) in enumerate(pipes)
        ]
        for process, (_, theirs) in zip(processes, pipes, strict=True):
            process.start()
            theirs.close()
        found = [_heard(mine) for mine, _ in pipes]
        for process in processes:
            # One that waits for a seat that failed would wait for long.
            if any(isinstance(one, str) for one in found):
                process.kill()
            process.join()
    return found


def _heard(line: Connection) -> Any:
    try:
        return line.recv()
    except EOFError:
        return "its process ended without a word"
