"""`microbatch = "max"`: as many rows at once as memory has room for, found by short runs in fresh processes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from escala.plan.preflight import Facts
from escala.run.assignment import Failure
from escala.run.best import Choice, Chooser, kept, key_of, seats_of, short, with_execution
from escala.run.launch import run_trial
from escala.terms.errors import Interrupted
from escala.terms.events import TrialMoved
from escala.terms.record import Tried
from escala.terms.trial import Trial

_STEPS = 2


class CannotRun(Exception):
    """How the runs ended that were to find an execution, where none of them came to its end."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def sizes(rows: int, unit: int = 1) -> tuple[int, ...]:
    """Numbers of rows at once, ascending, that divide a seat's `rows` and keep blocks of `unit` rows together."""
    return tuple(size for size in range(unit, rows + 1, unit) if rows % size == 0) or (rows,)


def largest(candidates: Sequence[int], fits: Callable[[int], bool]) -> int | None:
    """The largest of the ascending `candidates` that fits; None where not even the first does.

    All rows at once come first, as they mostly fit; then candidates by doubling from the smallest on, so that what
    does not fit is asked for as seldom as can be; then the half between what fits and what does not.
    """
    if fits(candidates[-1]):
        return candidates[-1]
    low, high = -1, len(candidates) - 1
    wanted = candidates[0]
    while low + 1 < high:
        # The next power of two on the way up; it is the half once something on the way did not fit.
        ahead = next((place for place in range(low + 1, high) if candidates[place] >= wanted), None)
        place = ahead if ahead is not None else (low + high) // 2
        if fits(candidates[place]):
            low, wanted = place, 2 * candidates[place]
        else:
            high, wanted = place, candidates[-1] + 1
    return candidates[low] if low >= 0 else None


def with_most_rows(chooser: Chooser, trial: Trial, facts: Facts) -> Choice:
    """The row's execution with as many rows at once as fit on the fullest of its seats.

    Raises `CannotRun` where a short run ends in any other way, or where not one row fits.
    """
    key = key_of(trial, trial.execution, {}, facts, chooser.host)
    return kept(chooser.cache / f"{key}.json", lambda: _search(chooser, trial, facts))


def _search(chooser: Chooser, trial: Trial, facts: Facts) -> tuple[Choice, bool]:
    numbers = itertools.count(1)
    tried, last = list[Tried](), list[Failure]()
    assert facts.folder is not None
    folder = Path(facts.folder)
    rows = max(seat.batch for seat in trial.seats)

    def fits(size: int) -> bool:
        number = next(numbers)
        execution = msgspec.structs.replace(trial.execution, microbatch=size, choose="given")
        chooser.say(TrialMoved(phase=f"fitting, {size:,} rows at once"))
        began = chooser.clock()
        ended = run_trial(
            short(with_execution(trial, execution, trial.seats), _STEPS),
            folder,
            chooser.logs / f"{trial.id}-fit-{number}",
            chooser.measure,
            chooser.mark,
            lambda _: None,
        )
        failure = ended.failure
        tried.append(Tried(execution, chooser.clock() - began, reason=failure.reason if failure else None))
        if failure is None:
            return True
        if failure.outcome == "interrupted":
            raise Interrupted(keyboard=False)
        if failure.outcome != "out of memory":
            raise CannotRun(failure)
        last.append(failure)
        return False

    found = largest(sizes(rows, trial.execution.unit), fits)
    if found is None:
        fewest = sizes(rows, trial.execution.unit)[0]
        reason = f"does not fit, not even with {fewest:,} row{'s' * (fewest > 1)} at once: {last[-1].reason}"
        raise CannotRun(msgspec.structs.replace(last[-1], reason=reason))
    execution = msgspec.structs.replace(trial.execution, microbatch=None if found == rows else found)
    seats, _ = seats_of(trial, execution, facts, chooser.host)
    return Choice(execution, seats, tuple(tried)), True
