"""What is shown while a campaign runs."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import pytest
import recorded as made
from rich.console import Console

from escala.report.live import plain_watcher, quiet_watcher, terminal_watcher
from escala.terms.events import CampaignStarted, Event, Note, TrialEnded, TrialMoved, TrialStarted, Watcher
from escala.terms.record import Record


class Clock:
    """Stands still until it is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lines() -> list[str]:
    return []


def play(watch: Watcher, clock: Clock, record: Record, number: int, total: int, *, moves: int = 4) -> None:
    """One trial: a start, moves that are 3 s apart, an end."""
    watch(TrialStarted(record.trial, number, total))
    for step in range(1, moves + 1):
        clock.now += 3
        watch(TrialMoved("train", 1, 2, step * 10, moves * 10, 5000.0, 1 / step))
    watch(TrialMoved("validation", 1, 2, moves * 10, moves * 10))
    watch(TrialEnded(record, number, total))


def test_a_log_has_a_line_for_each_event_worth_one(clock: Clock, lines: list[str]) -> None:
    watch = plain_watcher(lines.append, clock)
    watch(Note("data: fashion-mnist"))
    watch(CampaignStarted("runs/a", 2, 0))
    play(watch, clock, made.make("ddp x2", ways=2), 1, 2)
    play(watch, clock, made.make("ddp x2", 1, ways=2, outcome="failed", reason="killed"), 2, 2, moves=0)
    assert lines == [
        "note: data: fashion-mnist",
        "runs/a: 2 trials",
        "[1/2] ddp x2, repeat 1: 2 seats, batch 64 (32 a seat)",
        "  train, epoch 1/2, step 10/40, 5,000 samples/s, loss 1.00",
        "  validation, epoch 1/2, step 40/40",
        "[1/2] ddp x2, repeat 1: done in 2.30 s, accuracy 0.8700; about 12 s left",
        "[2/2] ddp x2, repeat 2: 2 seats, batch 64 (32 a seat)",
        "  validation, epoch 1/2",
        "[2/2] ddp x2, repeat 2: failed: killed",
    ]


def test_a_log_tells_moves_no_more_often_than_every_ten_seconds(clock: Clock, lines: list[str]) -> None:
    watch = plain_watcher(lines.append, clock)
    for step in range(1, 32):
        clock.now = float(step)
        watch(TrialMoved("train", 1, 100, step, 31))
    assert [re.search(r"step (\d+)", line)[1] for line in lines] == ["1", "11", "21", "31"]  # type: ignore[index]


def test_short_epochs_do_not_flood_a_log(clock: Clock, lines: list[str]) -> None:
    watch = plain_watcher(lines.append, clock)
    for epoch in range(1, 101):
        clock.now += 0.05
        watch(TrialMoved("train", epoch, 100))
        watch(TrialMoved("validation", epoch, 100))
    assert lines == ["  train, epoch 1/100", "  validation, epoch 1/100"]


def test_each_trial_is_told_anew(clock: Clock, lines: list[str]) -> None:
    watch = plain_watcher(lines.append, clock)
    for number in (1, 2):
        watch(TrialStarted(made.make("single", number).trial, number, 2))
        watch(TrialMoved("train"))
    assert lines[1::2] == ["  train", "  train"]


def test_what_does_not_fit_has_one_line(clock: Clock, lines: list[str]) -> None:
    unfit = made.make("ddp x4", ways=4, outcome="unfit", reason="needs 4 CPU cores", data=None)
    watch = plain_watcher(lines.append, clock)
    watch(TrialStarted(unfit.trial, 1, 2))
    watch(TrialEnded(unfit, 1, 2))
    assert lines == ["[1/2] ddp x4, repeat 1: unfit: needs 4 CPU cores"]


def test_quiet_tells_trouble_alone(clock: Clock, lines: list[str]) -> None:
    watch = quiet_watcher(lines.append)
    watch(Note("data"))
    watch(CampaignStarted("runs/a", 5, 0))
    for number, record in enumerate(made.troubled_campaign(), 1):
        play(watch, clock, record, number, 13)
    assert [line.split(": ", 1)[1] for line in lines] == [
        "failed: rank 1 was killed by signal 9 (SIGKILL)",
        "out of memory: std::bad_alloc",
        "diverged: the loss is not finite at step 12 on rank 0",
    ]


@pytest.fixture
def screen() -> Iterator[io.StringIO]:
    with io.StringIO() as text:
        yield text


def shown(text: io.StringIO) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text.getvalue())


def console_on(text: io.StringIO, width: int = 100) -> Console:
    return Console(file=text, force_terminal=True, width=width)


def test_a_terminal_shows_the_campaign_and_the_trial_under_way(clock: Clock, screen: io.StringIO) -> None:
    with terminal_watcher(console_on(screen), clock) as watch:
        watch(CampaignStarted("runs/a", 3, 1))
        play(watch, clock, made.make("ddp x2", ways=2), 2, 3)
        watch(TrialStarted(made.make("single").trial, 3, 3))
        watch(TrialMoved("train", 1, 2, 5, 20, 5000.0, 0.25))
        watch(Note("seen"))
    text = shown(screen)
    assert "2 of 3 trials" in text
    assert "about 12 s left" in text
    assert "[2/3] ddp x2, repeat 1: done in 2.30 s, accuracy 0.8700" in text
    assert "single, repeat 1: train, epoch 1/2, step 5/20, 5,000 samples/s, loss 0.250" in text
    assert "note: seen" in text


def test_finished_trials_keep_a_line_each_in_the_colour_of_their_outcome(clock: Clock, screen: io.StringIO) -> None:
    records = made.troubled_campaign()
    with terminal_watcher(console_on(screen), clock) as watch:
        watch(CampaignStarted("runs/a", len(records), 0))
        for number, record in enumerate(records, 1):
            watch(TrialEnded(record, number, len(records)))
    raw = screen.getvalue()
    assert re.search(r"\x1b\[32m\[ 1/13\] single, repeat 1: done", raw)
    assert re.search(r"\x1b\[31m\[10/13\] ddp x2, repeat 4: failed: rank 1", raw)
    assert len(re.findall(r"\[ ?\d+/13\]", shown(screen))) == 13


def test_a_narrow_terminal_keeps_the_foot_on_two_lines(clock: Clock, screen: io.StringIO) -> None:
    with terminal_watcher(console_on(screen, 40), clock) as watch:
        watch(CampaignStarted("runs/a", 3, 0))
        watch(TrialStarted(made.make("a label of some length", 1).trial, 1, 3))
        watch(TrialMoved("train", 1, 2, 5, 20, 5000.0, 0.25))
        watch(Note("seen"))
    assert "a label of some length, repeat 2: train…" in shown(screen)


def test_names_are_no_markup_and_no_escapes(clock: Clock, screen: io.StringIO) -> None:
    with terminal_watcher(console_on(screen, 200), clock) as watch:
        watch(CampaignStarted("[bold]folder[/bold]", 1, 0))
        record = made.make("[red]x[/red] \x1b]0;title\x07", outcome="failed", reason="[/] \x1b[2J :smile:")
        watch(TrialStarted(record.trial, 1, 1))
        watch(TrialEnded(record, 1, 1))
    text = shown(screen)
    assert "[bold]folder[/bold]: 1 trial" in text
    assert "[red]x[/red], repeat 1: failed: [/] :smile:" in text
    assert "\x1b]0;" not in screen.getvalue()
    assert "\x1b[2J" not in screen.getvalue()


def test_the_cursor_comes_back_when_the_campaign_breaks(clock: Clock, screen: io.StringIO) -> None:
    def stopped(event: Event) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), terminal_watcher(console_on(screen), clock):
        stopped(CampaignStarted("runs/a", 3, 0))
    assert "\x1b[?25h" in screen.getvalue()


def test_before_the_campaign_begins_the_screen_says_what_it_waits_for(clock: Clock, screen: io.StringIO) -> None:
    with terminal_watcher(console_on(screen), clock) as watch:
        watch(Note("drawing digits"))
    assert "looking at the machine and the data" in shown(screen)
