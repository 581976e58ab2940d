"""How far work on a data set is: a bar on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from escala.analyse.plain import LONGEST_NAME, plain
from escala.report.live import QUIET_S, Clock

Follow = Callable[[str, int, int | None], None]
"""Is told what is worked on, how much of it is done, and how much there is in all where that is known."""


@contextmanager
def bars(console: Console) -> Iterator[Follow]:
    """Draw a bar for each thing that is worked on, at the foot of `console`; they vanish at the end."""
    tasks = dict[str, TaskID]()
    name = TextColumn("{task.description}", markup=False)
    words = (name, BarColumn(), TextColumn("{task.fields[count]}"), TimeRemainingColumn())
    with Progress(*words, console=console, transient=True) as progress:

        def follow(what: str, done: int, total: int | None) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(plain(what, LONGEST_NAME), total=total, count="")
            progress.update(tasks[what], completed=done, total=total, count=_count(done, total))

        yield follow


def lines(write: Callable[[str], None], clock: Clock = time.monotonic) -> Follow:
    """Call `write` with a line for each thing that takes long, every 10 seconds."""
    told_at = clock()

    def follow(what: str, done: int, total: int | None) -> None:
        nonlocal told_at
        if clock() - told_at >= QUIET_S:
            told_at = clock()
            write(f"{plain(what, LONGEST_NAME)}: {_count(done, total)}")

    return follow


def _count(done: int, total: int | None) -> str:
    return f"{done:,}" if total is None else f"{done:,} of {total:,}"
