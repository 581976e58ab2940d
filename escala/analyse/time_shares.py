"""Where the time of a step goes, over the seats of a row."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from escala.analyse.row import TimeShares
from escala.terms.record import Record


def shares_of(profiled: Sequence[Record]) -> TimeShares | None:
    """The mean over the seats of the newest run that looked; None where there is none."""
    seats = profiled[-1].shares if profiled else ()
    if not seats:
        return None
    return TimeShares(
        work=fmean(seat.work for seat in seats),
        exchange=fmean(seat.exchange for seat in seats),
        idle=fmean(seat.idle for seat in seats),
        hidden=fmean(seat.hidden for seat in seats),
        seats=len(seats),
        steps=seats[0].steps,
        least_work=min(seat.work for seat in seats),
        most_idle=max(seats, key=lambda seat: seat.idle).rank,
    )
