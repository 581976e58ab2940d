"""Watchers: what a running campaign shows on a terminal, in a log, or when asked to be quiet."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from escala.analyse.plain import LONGEST_REASON, plain
from escala.report.progress import (
    Progress,
    campaign_text,
    ended_text,
    folded,
    left_text,
    moved_text,
    place_text,
    seating_text,
    trial_text,
)
from escala.terms.events import CampaignStarted, Event, Note, TrialEnded, TrialMoved, TrialStarted, Watcher
from escala.terms.record import Outcome

Clock = Callable[[], float]

QUIET_S = 10.0
"""A plain log says how a trial goes on no more often than this, seconds."""
_STYLES: dict[Outcome, str] = {
    "done": "green",
    "unfit": "dim",
    "out of memory": "yellow",
    "diverged": "yellow",
    "failed": "red",
    "interrupted": "dim",
}
_TROUBLE = ("failed", "out of memory", "diverged")


@contextmanager
def terminal_watcher(console: Console, clock: Clock = time.monotonic) -> Iterator[Watcher]:
    """Draw the campaign's progress at the foot of `console`; finished trials scroll above it, a line each."""
    progress = Progress()

    def screen() -> RenderableType:
        return _screen(progress, clock())

    with Live(get_renderable=screen, console=console, refresh_per_second=4, transient=True) as live:

        def watch(event: Event) -> None:
            nonlocal progress
            progress = folded(progress, event, clock())
            if line := _scrolled(event):
                live.console.print(line, soft_wrap=True)
            if not isinstance(event, TrialMoved):
                live.refresh()

        yield watch


def plain_watcher(write: Callable[[str], None], clock: Clock = time.monotonic) -> Watcher:
    """Call `write` with one line for each event worth one: for logs and for output that is no terminal."""
    progress = Progress()
    told_at = dict[str, float]()

    def watch(event: Event) -> None:
        nonlocal progress
        now = clock()
        progress = folded(progress, event, now)
        if isinstance(event, TrialStarted):
            told_at.clear()
            if event.trial.unfit is not None:
                return
        if isinstance(event, TrialMoved):
            # A trial may go through a hundred short epochs: each kind of phase is told when it is new, then rarely.
            if event.phase in told_at and now - max(told_at.values()) < QUIET_S:
                return
            told_at[event.phase] = now
        write(_line(event, progress, now))

    return watch


@contextmanager
def watching(write: Callable[[str], None], *, quiet: bool) -> Iterator[Watcher]:
    """A live display on a terminal, plain lines elsewhere; on the error stream, so that what is printed can be piped.

    `write` takes lines where there is no display.
    """
    console = Console(stderr=True)
    if quiet:
        yield quiet_watcher(write)
    elif console.is_terminal:
        with terminal_watcher(console) as watcher:
            yield watcher
    else:
        yield plain_watcher(write)


def quiet_watcher(write: Callable[[str], None]) -> Watcher:
    """Call `write` only about trials that failed, ran out of memory or diverged."""

    def watch(event: Event) -> None:
        if isinstance(event, TrialEnded) and event.record.outcome in _TROUBLE:
            write(_ended_line(event))

    return watch


def _line(event: Event, progress: Progress, now: float) -> str:
    if isinstance(event, CampaignStarted):
        return campaign_text(event)
    if isinstance(event, TrialStarted):
        place = place_text(event.number, event.total)
        return f"{place} {trial_text(event.trial)}: {seating_text(event.trial)}"
    if isinstance(event, TrialMoved):
        return f"  {moved_text(event)}"
    if isinstance(event, TrialEnded):
        left = left_text(progress, now)
        return _ended_line(event) + (f"; {left}" if left else "")
    return _note_line(event)


def _ended_line(event: TrialEnded) -> str:
    record = event.record
    return f"{place_text(event.number, event.total)} {trial_text(record.trial)}: {ended_text(record)}"


def _note_line(event: Note) -> str:
    return f"note: {plain(event.text, LONGEST_REASON)}"


def _scrolled(event: Event) -> Text | None:
    if isinstance(event, CampaignStarted):
        return Text(campaign_text(event))
    if isinstance(event, TrialEnded):
        return Text(_ended_line(event), style=_STYLES[event.record.outcome])
    if isinstance(event, Note):
        return Text(_note_line(event), style="dim")
    return None


def _screen(progress: Progress, now: float) -> RenderableType:
    if not progress.total:
        return Text("looking at the machine and the data", style="dim")
    bar = Table.grid(padding=(0, 1), expand=True)
    bar.add_column()
    bar.add_column(ratio=1)
    bar.add_column(justify="right", no_wrap=True)
    done = Text(f"{progress.finished} of {progress.total} trials")
    bar.add_row(done, ProgressBar(progress.total, progress.finished), Text(left_text(progress, now)))
    if progress.trial is None:
        return Group(bar, Text("cooling down" if progress.finished < progress.total else "", style="dim"))
    doing = moved_text(progress.moved) if progress.moved else f"starting {seating_text(progress.trial)}"
    under_way = Text(f"{trial_text(progress.trial)}: {doing}", no_wrap=True, overflow="ellipsis")
    return Group(bar, under_way)
