"""Runs a campaign, or goes on with one: each unfinished trial in fresh processes, its record written at once."""

from __future__ import annotations

import hashlib
import signal
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import psutil

from escala.plan.expand import question_of, trials
from escala.plan.preflight import Facts, Preflight, preflight
from escala.plan.read import Loaded
from escala.run.assignment import Failure, profile_trace_name
from escala.run.best import Chooser, chooser_of, noted
from escala.run.changed import refuse_changed_data
from escala.run.choosing import as_chosen
from escala.run.largest import CannotRun
from escala.run.launch import run_trial
from escala.run.leftovers import sweep
from escala.run.merge import done_record, failed_record
from escala.run.power import Power, at_edges, metered, sampling, with_energy
from escala.store import journal
from escala.store.campaign import Campaign, create_or_open, write_host
from escala.store.lock import hold
from escala.terms.doubts import Doubt
from escala.terms.errors import EscalaError, Interrupted
from escala.terms.events import CampaignStarted, Note, TrialEnded, TrialStarted, Watcher
from escala.terms.experiment import Experiment
from escala.terms.host import Host
from escala.terms.record import Record
from escala.terms.trial import Trial

_BUSY_SHARE = 20.0
_LOOK_S = 0.2


@dataclass(frozen=True)
class Opened:
    """A campaign ready to run: its folder, what was found before start, and the trials still to do."""

    campaign: Campaign
    experiment: Experiment
    before: Preflight
    total: int
    todo: tuple[Trial, ...]

    @property
    def mark(self) -> str:
        """Tells this campaign's processes from all others on the machine."""
        return mark_of(self.campaign.folder)


def mark_of(folder: Path) -> str:
    """A short name for a campaign folder that reveals nothing of its path."""
    return hashlib.blake2b(str(folder.resolve()).encode(), digest_size=8).hexdigest()


def run_campaign(
    loaded: Loaded,
    folder: Path,
    *,
    command: Sequence[str],
    watch: Watcher,
    repair: bool = False,
    retry: bool = False,
) -> tuple[Record, ...]:
    """All trials to their end; the newest record of each.

    `retry` runs again what failed. Raises `EscalaError`; `Interrupted` once the seats are gone.
    """
    with (
        _turning_signals_into_exceptions(),
        opened(loaded, folder, command, watch, repair, retry) as ready,
        metered(ready.experiment.measure, ready.before.host, watch, rest=bool(ready.todo)) as power,
    ):
        watch(CampaignStarted(str(ready.campaign.folder), ready.total, ready.total - len(ready.todo)))
        chooser = chooser_of(ready.before.host, ready.experiment.measure, ready.mark, ready.campaign.logs, watch)
        for place, trial in enumerate(ready.todo):
            number = ready.total - len(ready.todo) + place + 1
            watch(TrialStarted(trial, number, ready.total))
            record = _run_one(ready, power, chooser, trial, watch)
            journal.append(ready.campaign.records, record)
            watch(TrialEnded(record, number, ready.total))
            if record.outcome == "interrupted":
                raise Interrupted(keyboard=record.reason == "keyboard")
        records = tuple(journal.newest(journal.read(ready.campaign.records, curves=False).records).values())
    _refuse_if_nothing_fits(records)
    return records


@contextmanager
def taken(loaded: Loaded, folder: Path, command: Sequence[str], watch: Watcher) -> Iterator[Campaign]:
    """The folder, locked, for this experiment, and rid of processes that an earlier start had left behind."""
    with hold(folder) as taken_over:
        campaign = create_or_open(
            folder, loaded.experiment, loaded.text, loaded.overrides, tuple(command), quick=loaded.quick
        )
        if taken_over:
            watch(Note(taken_over))
        if killed := sweep(mark_of(campaign.folder)):
            watch(Note(f"ended {len(killed)} processes that an earlier start had left behind"))
        yield campaign


@contextmanager
def opened(
    loaded: Loaded,
    folder: Path,
    command: Sequence[str],
    watch: Watcher,
    repair: bool,
    retry: bool,
    launcher: tuple[int, int] | None = None,
) -> Iterator[Opened]:
    """Lock the folder, look at the machine, decide the trials and which of them are still to do.

    `launcher`: nodes, and seats on each, where somebody else starts the processes.
    """
    # Before the folder is opened, which may write what is asked for now over what the training was asked for.
    if Campaign(folder).checkpoints.exists():
        what = "holds a training of escala train, whose record is of one run with checkpoints"
        raise EscalaError("CFG-CAMPAIGN", str(folder), what, next_step="give another --out folder")
    with taken(loaded, folder, command, watch) as campaign:
        recorded = _recorded(campaign, watch, repair=repair)
        finished = _finished(recorded, retry=retry)
        question = question_of(loaded.experiment, prepare=True)
        before = preflight(question, lambda text: watch(Note(text)))
        if launcher is not None:
            host = msgspec.structs.replace(before.host, nodes=launcher[0], seats_per_node=launcher[1])
            before = msgspec.structs.replace(before, host=host)
        write_host(campaign, before.host)
        for facts in before.facts:
            watch(Note(f"data: {facts.use.name} ({facts.use.origin}, {facts.use.where})"))
        everything = trials(loaded.experiment, before)
        todo = tuple(trial for trial in everything if trial.id not in finished)
        refuse_changed_data(recorded, todo, before)
        yield Opened(campaign, loaded.experiment, before, len(everything), todo)


def _recorded(campaign: Campaign, watch: Watcher, *, repair: bool) -> dict[str, Record]:
    if repair and (moved := journal.repair(campaign.records)):
        watch(Note(f"{moved} damaged records were put aside; their trials run again"))
    if torn := journal.set_torn_aside(campaign.records):
        watch(Note(f"the last record was cut: set aside in {torn.name}; its trial runs again"))
    return journal.newest(journal.read(campaign.records, curves=False).records)


def _finished(recorded: Mapping[str, Record], *, retry: bool) -> set[str]:
    return {
        id_
        for id_, record in recorded.items()
        if journal.finished(record) and not (retry and record.outcome not in ("done", "unfit"))
    }


def _run_one(ready: Opened, power: Power, chooser: Chooser, trial: Trial, watch: Watcher) -> Record:
    host, facts = ready.before.host, ready.before.of_trial(trial)
    started, began = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    doubts = list(doubts_of(trial, facts, host))
    if trial.unfit is not None:
        record = failed_record(trial, host, facts, Failure("unfit", trial.unfit), ())
    else:
        try:
            if _cool_down(ready, first=ready.todo[0].id == trial.id):
                doubts.append("busy host")
            running, choice = as_chosen(chooser, trial, facts)
            record = noted(_measured(ready, power, running, facts, doubts, watch), trial, choice)
        except CannotRun as end:
            record = failed_record(trial, host, facts, end.failure, doubts)
        except (KeyboardInterrupt, Interrupted) as end:
            by = "keyboard" if isinstance(end, KeyboardInterrupt) or end.keyboard else "terminated"
            record = failed_record(trial, host, facts, Failure("interrupted", by), doubts)
    return msgspec.structs.replace(record, started=started, wall_s=time.monotonic() - began)


def _measured(ready: Opened, power: Power, trial: Trial, facts: Facts, doubts: list[Doubt], watch: Watcher) -> Record:
    assert facts.folder is not None
    with sampling(power, trial) as samples:
        ended = run_trial(
            trial,
            Path(facts.folder),
            ready.campaign.logs / trial.id,
            ready.experiment.measure,
            ready.mark,
            watch,
            edge=at_edges(samples),
        )
    if ended.disturbed:
        doubts.append("disturbed")
    if ended.failure is not None:
        return failed_record(trial, ready.before.host, facts, ended.failure, doubts)
    record = done_record(trial, ready.before.host, facts, ended.results, doubts)
    if trial.role == "profile" and ready.experiment.measure.profile == "trace":
        names = (profile_trace_name(seat.rank) for seat in trial.seats)
        record = msgspec.structs.replace(
            record, profile_traces=tuple(f"{ready.campaign.logs.name}/{trial.id}/{name}" for name in names)
        )
    return with_energy(record, power, samples, ended.results, ready.campaign.folder)


def doubts_of(trial: Trial, facts: Facts, host: Host) -> tuple[Doubt, ...]:
    """The doubts that are certain before the trial starts."""
    found = list[Doubt]()
    # Seats on one processor each have cores of their own, up to as many as there are.
    most = host.cores if trial.strategy.device == "cpu" else 1
    sharing = Counter((seat.node, seat.devices) for seat in trial.seats)
    if any(seats > most for seats in sharing.values()):
        found.append("simulated")
    if trial.memory_gib:
        found.append("limited memory")
    if facts.use.origin == "generated":
        found.append("generated data")
    return tuple(found)


def _cool_down(ready: Opened, *, first: bool) -> bool:
    """Wait, end what should not be there, and tell whether the processor is busy with something else."""
    if not first:
        time.sleep(max(0.0, ready.experiment.measure.cooldown_s - _LOOK_S))
    sweep(ready.mark)
    return bool(psutil.cpu_percent(interval=_LOOK_S) > _BUSY_SHARE)


def _refuse_if_nothing_fits(records: Sequence[Record]) -> None:
    if records and all(record.outcome == "unfit" for record in records):
        raise EscalaError(
            "ENV-DEVICE",
            "host",
            f"no strategy of this experiment fits: {records[0].trial.label} {records[0].reason}",
            next_step="see what fits with: escala probe",
        )


@contextmanager
def _turning_signals_into_exceptions() -> Iterator[None]:
    def on_term(number: int, frame: object) -> None:
        del number, frame
        raise Interrupted(keyboard=False)

    before = signal.signal(signal.SIGTERM, on_term)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
