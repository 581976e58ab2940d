"""`choose = "best"`: the fastest execution of a row, found by short runs in fresh processes, and kept."""

from __future__ import annotations

import hashlib
import itertools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from escala import __version__
from escala.data.prepared import cache_folder
from escala.plan.preflight import Facts
from escala.plan.seated import seated
from escala.run.halving import CURVE, Found, Measured, search
from escala.run.launch import run_trial
from escala.store.files import disk_errors, names_in, write_atomic
from escala.terms.errors import EscalaError, Interrupted
from escala.terms.events import TrialMoved
from escala.terms.experiment import ExecutionSpec, MeasureSpec
from escala.terms.host import Host
from escala.terms.record import Record, Tried
from escala.terms.trial import Seat, Trial

CHOICES = "choices"
"""Folder of the cache in which they are kept."""
FREE: dict[str, tuple[Any, ...]] = {
    "memory_format": ("channels_last",),
    "optimizer_kernel": ("fused", "foreach"),
    "dropout_kernel": ("packed",),
    "compile": (True,),
    "capture": (True,),
    "feed": ("resident", "host"),
    "overlap": ("optimizer",),
    "transport": ("shm",),
    "pin": (True,),
}
"""What may be chosen: keys, and their values beside the default one. A key that the experiment sets is left alone."""
_STEPS = CURVE + 10


class Choice(Struct, frozen=True):
    """What a search found, and the seats of it; kept as JSON beside the data sets' cache."""

    execution: ExecutionSpec
    seats: tuple[Seat, ...]
    tried: tuple[Tried, ...]


@dataclass(frozen=True)
class Chooser:
    """Chooses for the rows of one campaign. `cache` keeps choices between campaigns; `logs` takes what runs print."""

    host: Host
    measure: MeasureSpec
    mark: str
    logs: Path
    cache: Path
    say: Callable[[TrialMoved], None]
    clock: Callable[[], float] = time.monotonic

    def choose(self, trial: Trial, facts: Facts) -> Choice:
        """The execution for this row, from the cache where one was found before. Raises ENV-DISK, CFG-BEST."""
        plain = msgspec.structs.replace(trial.execution, choose="given")
        free = admissible(trial, plain, facts, self.host)

        def find() -> tuple[Choice, bool]:
            found = self._search(trial, plain, free, facts)
            seats, _ = seats_of(trial, found.execution, facts, self.host)
            return Choice(found.execution, seats, found.tried), not found.cut_short

        return kept(self.cache / f"{key_of(trial, plain, free, facts, self.host)}.json", find)

    def _search(self, trial: Trial, plain: ExecutionSpec, free: Mapping[str, Sequence[Any]], facts: Facts) -> Found:
        numbers = itertools.count(1)
        rates = dict[ExecutionSpec, float]()

        def run(execution: ExecutionSpec, seconds: float) -> Measured:
            number = next(numbers)
            self.say(TrialMoved(phase=f"choosing, run {number}"))
            known = rates.get(execution, rates.get(plain))
            steps = max(_STEPS, round(seconds * known / trial.batch)) if known else _STEPS
            # With dropout, which belongs to the time of a step.
            found = self._one(trial, execution, steps, facts, number, probing=not facts.drops)
            if found.samples_per_second is not None:
                rates[execution] = found.samples_per_second
            return found

        def curve(execution: ExecutionSpec) -> Measured:
            number = next(numbers)
            self.say(TrialMoved(phase=f"choosing, run {number}, losses"))
            return self._one(trial, execution, _STEPS, facts, number, probing=True)

        try:
            return search(plain, free, run, self.clock, self.measure.best_s, curve=curve if facts.drops else None)
        except ValueError as error:
            where = f"strategy {trial.label}"
            raise EscalaError("CFG-BEST", where, f"its plain execution does not run: {error}") from None

    def _one(
        self, trial: Trial, execution: ExecutionSpec, steps: int, facts: Facts, number: int, *, probing: bool
    ) -> Measured:
        seats, unfit = seats_of(trial, execution, facts, self.host)
        if unfit is not None:
            return Measured(reason=unfit)
        assert facts.folder is not None
        ended = run_trial(
            short(with_execution(trial, execution, seats), steps),
            Path(facts.folder),
            self.logs / f"{trial.id}-best-{number}",
            self.measure,
            self.mark,
            lambda _: None,
            probing=probing,
        )
        if ended.failure is not None:
            if ended.failure.outcome == "interrupted":
                raise Interrupted(keyboard=False)
            return Measured(reason=ended.failure.reason)
        results = ended.results
        seconds = max(result.train_s for result in results)
        columns = zip(*(result.losses for result in results), strict=True)
        losses = tuple(sum(float("nan") if part is None else part for part in column) for column in columns)
        return Measured(results[0].samples / seconds if seconds > 0 else None, losses)


def noted(record: Record, trial: Trial, choice: Choice | None) -> Record:
    """The record under the trial that was asked for, with what was chosen for it."""
    if choice is None:
        return record
    return msgspec.structs.replace(record, trial=trial, execution=choice.execution, tried=choice.tried)


def chooser_of(
    host: Host, measure: MeasureSpec, mark: str, logs: Path, watch: Callable[[TrialMoved], None]
) -> Chooser:
    """A chooser that keeps what it finds beside the prepared data."""
    return Chooser(host, measure, mark, logs, cache_folder(os.environ) / CHOICES, watch)


def with_execution(trial: Trial, execution: ExecutionSpec, seats: tuple[Seat, ...]) -> Trial:
    """The trial as this execution runs it."""
    return msgspec.structs.replace(trial, execution=execution, seats=seats)


def short(trial: Trial, steps: int) -> Trial:
    """The same work for so many steps, at one learning rate, so that curves of any length agree."""
    train = msgspec.structs.replace(
        trial.train, epochs=None, steps=steps, until=None, schedule="constant", warmup_steps=0, decay_steps=None
    )
    return msgspec.structs.replace(trial, train=train, seed=trial.train.seed, repeat=0)


def kept(file: Path, find: Callable[[], tuple[Choice, bool]]) -> Choice:
    """What `find` found before or finds now; kept in `file` where it says that it is worth it. Raises ENV-DISK."""
    if (known := _read(file)) is not None:
        return known
    choice, worth = find()
    if worth:
        with disk_errors(file.parent):
            names_in(file.parent)
        write_atomic(file, msgspec.json.encode(choice))
    return choice


def seats_of(trial: Trial, execution: ExecutionSpec, facts: Facts, host: Host) -> tuple[tuple[Seat, ...], str | None]:
    """The seats of the row with this execution, and why it does not fit, if so."""
    return seated(trial.strategy, trial.peer, trial.train, execution, facts, host)


def admissible(trial: Trial, plain: ExecutionSpec, facts: Facts, host: Host) -> dict[str, tuple[Any, ...]]:
    """Keys that may be chosen with the values that fit here; those that the experiment set are its own."""
    usual = ExecutionSpec()
    found = dict[str, tuple[Any, ...]]()
    for key, values in FREE.items():
        if getattr(plain, key) != getattr(usual, key):
            continue
        fitting = tuple(
            value
            for value in values
            if not _is_idle(trial, key, value)
            and seats_of(trial, msgspec.structs.replace(plain, **{key: value}), facts, host)[1] is None
        )
        if fitting:
            found[key] = fitting
    return found


def _is_idle(trial: Trial, key: str, value: Any) -> bool:
    """Whether a value changes nothing: data are at hand of a processor anyhow, and one seat exchanges nothing."""
    if key == "feed" and value == "resident":
        return trial.strategy.device == "cpu"
    if key == "pin" and trial.strategy.device != "cpu":
        return True
    return key in ("transport", "pin") and len(trial.seats) == 1


def key_of(trial: Trial, plain: ExecutionSpec, free: Mapping[str, Sequence[Any]], facts: Facts, host: Host) -> str:
    """A name for the question: the row but for its repeat, the machine, and what may be chosen."""
    decisive = (
        __version__,
        host.likeness,
        host.software,
        trial.workload,
        trial.options,
        facts.use.digest,
        trial.strategy,
        trial.seats,
        trial.memory_gib,
        trial.batch,
        trial.train.optimizer,
        plain,
        free,
    )
    return hashlib.blake2b(msgspec.json.encode(decisive, order="deterministic"), digest_size=12).hexdigest()


def _read(path: Path) -> Choice | None:
    """What was kept; None where there is nothing that can be understood, so that it is looked for again."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Choice)
    except (OSError, msgspec.DecodeError):
        return None
