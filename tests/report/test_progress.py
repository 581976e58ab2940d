"""How far a campaign is, from its events alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import recorded as made
from msgspec.structs import replace
from shown import HOSTILE

from escala.report.progress import (
    Progress,
    campaign_text,
    ended_text,
    folded,
    left_s,
    left_text,
    moved_text,
    place_text,
    seating_text,
    trial_text,
)
from escala.terms.events import CampaignStarted, Event, Note, TrialEnded, TrialMoved, TrialStarted


def after(events: Sequence[tuple[float, Event]]) -> Progress:
    progress = Progress()
    for now, event in events:
        progress = folded(progress, event, now)
    return progress


def ran(begin: float, end: float, number: int, total: int, **more: object) -> list[tuple[float, Event]]:
    record = made.make("single", number, **more)  # type: ignore[arg-type]
    return [(begin, TrialStarted(record.trial, number, total)), (end, TrialEnded(record, number, total))]


def test_before_the_first_trial_has_ended_nobody_knows() -> None:
    progress = after([(0, CampaignStarted("f", 4, 1)), *ran(0, 9, 2, 4)[:1]])
    assert (progress.finished, progress.total, left_s(progress, 5.0)) == (1, 4, None)
    assert left_text(progress, 5.0) == ""


def test_time_left_comes_from_trials_of_this_start_alone() -> None:
    progress = after([(100, CampaignStarted("f", 10, 6)), *ran(100, 110, 7, 10), *ran(112, 124, 8, 10)])
    # 24 s for two, pauses between them included: 12 s each, two to go.
    assert left_s(progress, 124) == pytest.approx(24)
    assert left_s(progress, 130) == pytest.approx(18)
    assert left_s(progress, 1000) == 0


def test_what_does_not_fit_is_finished_but_says_nothing_about_time() -> None:
    unfit = made.make("ddp x4", outcome="unfit", reason="too few", data=None)
    progress = after([(0, CampaignStarted("f", 3, 0)), (0, TrialEnded(unfit, 1, 3))])
    assert (progress.finished, left_s(progress, 0)) == (1, None)
    progress = folded(progress, TrialEnded(made.make(), 2, 3), 10)
    assert left_s(progress, 10) == pytest.approx(10)


def test_at_the_end_nothing_is_left() -> None:
    progress = after([(0, CampaignStarted("f", 1, 0)), *ran(0, 5, 1, 1)])
    assert left_text(progress, 5) == ""
    assert progress.trial is None


@pytest.mark.parametrize(
    ("each", "text"),
    [(8.0, "about 80 s left"), (30.0, "about 5 min left"), (1000.0, "about 2 h 47 min left")],
)
def test_time_left_in_words(each: float, text: str) -> None:
    assert left_text(after([(0, CampaignStarted("f", 11, 0)), *ran(0, each, 1, 11)]), each) == text


def test_notes_change_nothing() -> None:
    progress = after([(0, CampaignStarted("f", 3, 0))])
    assert folded(progress, Note("data"), 5) == progress


def test_a_phase_without_a_loss_leaves_the_latest_in_sight() -> None:
    progress = after(
        [(0, TrialMoved("train", 1, 2, 10, 20, 5000.0, 0.7)), (1, TrialMoved("validation", 1, 2, 10, 20))]
    )
    assert progress.moved is not None
    assert (progress.moved.phase, progress.moved.loss, progress.moved.samples_per_second) == ("validation", 0.7, None)


def test_a_new_trial_forgets_the_last_ones_loss() -> None:
    progress = after([(0, TrialMoved("train", loss=0.7)), *ran(1, 2, 1, 2)[:1]])
    assert progress.moved is None


def test_words_of_a_trial() -> None:
    trial = made.make("ddp x2", 2, ways=2, point={"train.batch": 64}).trial
    assert trial_text(trial) == "ddp x2, train.batch = 64, repeat 3"
    assert seating_text(trial) == "2 seats, batch 64 (32 a seat)"
    assert seating_text(made.make().trial) == "1 seat, batch 64"
    assert seating_text(made.make(ways=3, batch=100).trial) == "3 seats, batch 100 (33 to 34 a seat)"


def test_words_of_a_move() -> None:
    moved = TrialMoved("train", 1, 3, 120, 2811, 12_345.6, 0.51234)
    assert moved_text(moved) == "train, epoch 1/3, step 120/2,811, 12,346 samples/s, loss 0.512"
    assert moved_text(TrialMoved("warm-up")) == "warm-up"
    assert moved_text(TrialMoved("train", 1, 0, 5, 300)) == "train, step 5/300"


def test_words_of_an_end() -> None:
    assert ended_text(made.make()) == "done in 2.30 s, accuracy 0.8700"
    assert ended_text(made.make(steps=300)) == "done in 2.00 s, 9,600 samples/s"
    assert ended_text(made.make(doubts=("not warm",))) == "done in 2.30 s, accuracy 0.8700, not warm"
    assert ended_text(made.make(outcome="failed", reason="killed\nby 9")) == "failed: killed by 9"
    assert ended_text(made.make(outcome="failed")) == "failed"


def test_words_of_a_campaign() -> None:
    assert campaign_text(CampaignStarted("runs/a", 15, 0)) == "runs/a: 15 trials"
    assert campaign_text(CampaignStarted("runs/a", 15, 3)) == "runs/a: 15 trials, 3 of them recorded before"
    assert place_text(3, 115) == "[  3/115]"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_become_one_harmless_line(name: str) -> None:
    record = made.make(name, outcome="failed", reason=name, point={"key": name})
    record = replace(record, trial=replace(record.trial, point={name: name}))
    texts = [trial_text(record.trial), ended_text(record), moved_text(TrialMoved(name))]
    for text in (*texts, campaign_text(CampaignStarted(name, 1, 0))):
        assert text.isprintable()
        assert len(text) < 600
