"""Shares of a step's time: mean over the seats, and runs for them count for nothing else."""

from __future__ import annotations

import pytest
import recorded as made
from msgspec.structs import replace

from escala.analyse.group import grouped
from escala.analyse.summary import summarise
from escala.report.time_shares import time_share_sections
from escala.terms.record import Record, SeatShares

SEATS = (SeatShares(0, "cpu", 20, 0.5, 0.3, 0.2, 0.1), SeatShares(1, "cpu", 20, 0.7, 0.1, 0.2, 0.3))


def profiled(seats: tuple[SeatShares, ...] = SEATS) -> list[Record]:
    """Three timed runs of a row and one under the profiler."""
    runs = made.repeats("ddp x2", made.FAST[:3], ways=2)
    looked = made.make("ddp x2", 3, ways=2)
    looked = replace(looked, trial=replace(looked.trial, role="profile"), shares=seats, phases=None, score=None)
    return [*runs, looked]


def test_a_run_under_the_profiler_is_no_training() -> None:
    (group,) = grouped(profiled())
    assert (len(group.done), len(group.timed), len(group.metered), len(group.profiled)) == (3, 3, 3, 1)
    (row,) = summarise(profiled())
    assert row.outcomes == {"done": 3}
    assert row.runs == row.attempts == 3


def test_shares_are_the_mean_over_the_seats() -> None:
    (row,) = summarise(profiled())
    shares = row.time_shares
    assert shares is not None
    assert (shares.work, shares.exchange, shares.idle, shares.hidden) == pytest.approx((0.6, 0.2, 0.2, 0.2))
    assert (shares.seats, shares.steps, shares.least_work, shares.most_idle) == (2, 20, 0.5, 0)
    assert summarise(profiled()[:3])[0].time_shares is None


def test_the_report_shows_them_only_where_there_are_any() -> None:
    (section,) = time_share_sections(summarise(profiled()))
    told = {column.title.replace("\n", " "): column.cells for column in section.columns}
    assert section.heading == "Where the time of a step goes"
    assert told["strategy"] == ("ddp x2",)
    assert told["work"] == ("60.0 %",)
    assert told["work of the least busy"] == ("50.0 %",)
    assert time_share_sections(summarise(profiled()[:3])) == ()
    alone = time_share_sections(summarise(profiled(SEATS[:1])))[0]
    assert "work of the\nleast busy" not in {column.title for column in alone.columns}
