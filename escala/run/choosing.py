"""What a row leaves open in its execution, decided before its first run: rows at once, then all else."""

from __future__ import annotations

import msgspec

from escala.plan.preflight import Facts
from escala.run.best import Choice, Chooser, with_execution
from escala.run.largest import with_most_rows
from escala.terms.trial import Trial


def as_chosen(chooser: Chooser, trial: Trial, facts: Facts) -> tuple[Trial, Choice | None]:
    """The trial as it is to be run, and what was chosen where it leaves its execution open. Raises `CannotRun`."""
    choice: Choice | None = None
    if trial.execution.microbatch == "max":
        choice = with_most_rows(chooser, trial, facts)
        trial = with_execution(trial, choice.execution, choice.seats)
    if trial.execution.choose == "best":
        found = chooser.choose(trial, facts)
        tried = (*(choice.tried if choice else ()), *found.tried)
        choice = msgspec.structs.replace(found, tried=tried)
        trial = with_execution(trial, choice.execution, choice.seats)
    return trial, choice
