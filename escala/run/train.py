"""One training to its end: a single strategy, kept in checkpoints, to be stopped and gone on with at any point.

Its folder looks like a campaign's (`experiment.json`, `host.json`, `records.jsonl`, `logs/`), beside which lie
`checkpoints/` and, at the end, `model.safetensors`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from escala.plan.expand import question_of, trials
from escala.plan.preflight import Facts, Preflight, preflight
from escala.plan.read import Loaded, label_of, variations
from escala.run.assignment import Keeping
from escala.run.best import chooser_of, noted
from escala.run.campaign import doubts_of, mark_of, taken
from escala.run.choosing import as_chosen
from escala.run.largest import CannotRun
from escala.run.launch import Ended, run_trial
from escala.run.merge import done_record, failed_record
from escala.run.power import at_edges, metered, sampling, with_energy, without_energy
from escala.store import journal
from escala.store.campaign import Campaign, write_host
from escala.store.checkpoint import KEPT, MODEL, Checkpoint, Meta, newest
from escala.store.files import check_room, disk_errors, names_in, write_atomic
from escala.terms.doubts import Doubt
from escala.terms.errors import EscalaError, Interrupted
from escala.terms.events import CampaignStarted, Event, Note, TrialEnded, TrialMoved, TrialStarted, Watcher
from escala.terms.experiment import Experiment, StrategySpec, TrainSpec
from escala.terms.record import Record
from escala.terms.trial import Trial

GRACE_S = 25.0
"""What seats get to make a last checkpoint; batch systems and container managers kill after 30 s by default."""
_SAVING = ("train", "checkpoint")
_SHOWN = 12


@dataclass(frozen=True)
class Trained:
    """The record of the training, and where its weights lie under the network's own names; None: it failed."""

    record: Record
    weights: Path | None


@dataclass
class _Stopping:
    """What signals asked for; `seated`: there are seats that can make a checkpoint first."""

    seated: bool = False
    wanted: bool = False
    keyboard: bool = False
    phase: str = ""

    def grace_s(self) -> float | None:
        """None: go on. Outside a training step nothing is lost that a checkpoint could keep."""
        if not self.wanted:
            return None
        return GRACE_S if self.phase in _SAVING else 0.0


def chosen(experiment: Experiment, label: str | None) -> StrategySpec:
    """The one strategy to train. Raises CFG-STRATEGY where the experiment leaves it open."""
    if len(points := variations(experiment)) > 1:
        raise EscalaError(
            "CFG-STRATEGY",
            "sweep" if experiment.sweep else "case",
            f"the experiment has {len(points)} points, and a training is one of them",
            next_step="write an experiment without sweep and case"
            if experiment.sweep
            else f"give one: --case {' | '.join(repr(case.name) for case in experiment.case)}",
        )
    known = {label_of(spec): spec for spec in points[0].experiment.strategy}
    if label is None and len(known) == 1:
        return next(iter(known.values()))
    if label in known:
        return known[label]
    what = "several strategies are written there" if label is None else f"there is no strategy {label!r}"
    next_step = f"give one: --strategy {' | '.join(repr(name) for name in known)}"
    raise EscalaError("CFG-STRATEGY", "--strategy", what, next_step=next_step)


def run_training(
    loaded: Loaded,
    folder: Path,
    *,
    command: Sequence[str],
    watch: Watcher,
    label: str | None = None,
    resume: bool = False,
    every_s: float = 600.0,
) -> Trained:
    """Train to the end, from the newest sound checkpoint if there is one and `resume` is set.

    Raises `EscalaError`; `Interrupted` once a checkpoint is made and the seats are gone.
    """
    spec = chosen(loaded.experiment, label)
    if spec.peer is not None:
        what = f"the peer {spec.peer} keeps no checkpoints, and escala train goes by them"
        raise EscalaError("CFG-STRATEGY", f"strategy {label_of(spec)}", what, next_step="leave peer out")
    with _stopping() as stopping, taken(loaded, folder, command, watch) as campaign:
        records = journal.newest(journal.read(campaign.records, curves=False).records)
        begin = newest(campaign.checkpoints, lambda text: watch(Note(text)))
        _refuse_to_mix(campaign, begin, recorded=bool(records), resume=resume)
        with disk_errors(campaign.checkpoints):
            names_in(campaign.checkpoints)
        trial, before = _decided(loaded.experiment, spec, watch)
        write_host(campaign, before.host)
        facts = before.of_trial(trial)
        watch(Note(f"data: {facts.use.name} ({facts.use.origin}, {facts.use.where})"))
        if begin is not None:
            _refuse_another(begin, trial, facts)
            for text in _notes(begin.meta, trial):
                watch(Note(text))
            if trial.id in records and records[trial.id].outcome == "done":
                watch(Note("this training came to its end before"))
                return Trained(records[trial.id], _export(campaign, begin))
        # The checkpoints that stay, the one being written, and the weights at the end.
        check_room(campaign.checkpoints, (KEPT + 2) * _bytes_of_state(trial.train, trial, facts))
        keeping = Keeping(
            folder=str(campaign.checkpoints),
            every_s=every_s,
            data=facts.use.digest,
            begin=str(begin.folder) if begin else None,
        )
        record = _run(campaign, trial, before, keeping, loaded.experiment, stopping, watch)
        if record.outcome != "done":
            return Trained(record, None)
        last = newest(campaign.checkpoints, lambda text: watch(Note(text)))
        return Trained(record, _export(campaign, last))


def _run(
    campaign: Campaign,
    trial: Trial,
    before: Preflight,
    keeping: Keeping,
    experiment: Experiment,
    stopping: _Stopping,
    watch: Watcher,
) -> Record:
    """The record, which is in the log. Raises `Interrupted`, and what a seat found wrong."""
    facts = before.of_trial(trial)
    assert facts.folder is not None
    watch(CampaignStarted(str(campaign.folder), 1, 0))
    watch(TrialStarted(trial, 1, 1))
    started, began = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    chooser = chooser_of(before.host, experiment.measure, mark_of(campaign.folder), campaign.logs, watch)
    try:
        running, choice = as_chosen(chooser, trial, facts)
    except CannotRun as end:
        record = failed_record(trial, before.host, facts, end.failure, ())
        journal.append(campaign.records, record)
        watch(TrialEnded(record, 1, 1))
        return record
    stopping.seated = True
    with metered(experiment.measure, before.host, watch, rest=False) as power, sampling(power, trial) as samples:
        ended = run_trial(
            running,
            Path(facts.folder),
            campaign.logs / trial.id,
            experiment.measure,
            mark_of(campaign.folder),
            _following(stopping, watch),
            keeping=keeping,
            stop=stopping.grace_s,
            edge=at_edges(samples),
        )
    stopping.seated = False
    if ended.failure is not None and ended.failure.outcome == "interrupted":
        raise _interrupted(stopping.keyboard)
    record = noted(_record(running, before, facts, ended), trial, choice)
    if keeping.begin is None:
        record = with_energy(record, power, samples, ended.results, campaign.folder)
    else:
        record = without_energy(record, "this training was stopped and gone on with, and what it took before is lost")
    record = msgspec.structs.replace(record, started=started, wall_s=time.monotonic() - began)
    journal.append(campaign.records, record)
    watch(TrialEnded(record, 1, 1))
    if ended.failure is not None and ended.failure.error is not None:
        raise EscalaError.from_dict(ended.failure.error)
    return record


def _record(trial: Trial, before: Preflight, facts: Facts, ended: Ended) -> Record:
    doubts = list[Doubt](doubts_of(trial, facts, before.host))
    if ended.disturbed:
        doubts.append("disturbed")
    if ended.failure is not None:
        return failed_record(trial, before.host, facts, ended.failure, doubts)
    return done_record(trial, before.host, facts, ended.results, doubts)


def _decided(experiment: Experiment, spec: StrategySpec, watch: Watcher) -> tuple[Trial, Preflight]:
    """The one trial, and what was found before start. Raises ENV-DEVICE where it does not fit."""
    single = msgspec.structs.replace(
        experiment,
        strategy=(msgspec.structs.replace(spec, repeats=None),),
        measure=msgspec.structs.replace(experiment.measure, repeats=1),
    )
    before = preflight(question_of(single, prepare=True), lambda text: watch(Note(text)))
    (trial,) = trials(single, before)
    if trial.unfit is not None:
        raise EscalaError(
            "ENV-DEVICE", f"strategy {trial.label}", trial.unfit, next_step="see what fits with: escala probe"
        )
    return trial, before


def _refuse_to_mix(campaign: Campaign, begin: Checkpoint | None, *, recorded: bool, resume: bool) -> None:
    if recorded and not campaign.checkpoints.exists():
        what = "holds a campaign of escala run"
        raise EscalaError("CFG-RESUME", str(campaign.folder), what, next_step="give another --out folder")
    if begin is not None and not resume:
        raise EscalaError(
            "CFG-RESUME",
            str(campaign.folder),
            f"holds a training that came to step {begin.meta.step}",
            next_step="give --resume to go on with it, or another --out folder",
        )


def _refuse_another(begin: Checkpoint, trial: Trial, facts: Facts) -> None:
    """Raises DATA-HASH or CKPT-OTHER where the rest would not be the rest of the same training."""
    meta = begin.meta
    if meta.data and facts.use.digest and meta.data != facts.use.digest:
        raise EscalaError(
            "DATA-HASH",
            facts.use.name,
            f"the data changed since the checkpoint: {meta.data[:_SHOWN]} then, {facts.use.digest[:_SHOWN]} now",
            next_step="put the earlier data back, or use another --out folder",
        )
    pairs = {
        "workload": (meta.workload, trial.workload),
        "batch": (meta.batch, trial.batch),
        "seed": (meta.seed, trial.seed),
        "optimizer": (meta.optimizer, trial.train.optimizer),
    }
    if other := [f"{key} {old} there, {new} now" for key, (old, new) in pairs.items() if old != new]:
        raise EscalaError(
            "CKPT-OTHER",
            str(begin.folder),
            f"was made by another training: {', '.join(other)}",
            next_step="give its settings, or another --out folder",
        )


def _notes(meta: Meta, trial: Trial) -> Iterator[str]:
    yield f"goes on after step {meta.step} (epoch {meta.epoch + 1}, {meta.done} steps of it done)"
    made = f"the checkpoint was made by {meta.strategy} with {_seats(meta.seats)}"
    if meta.seats != len(trial.seats):
        drawn = (
            "and, by row, same dropout" if trial.execution.by_row else "but random numbers (dropout) are drawn anew"
        )
        yield f"{made}, this has {_seats(len(trial.seats))}: same rows, {drawn}"
    elif meta.strategy != trial.strategy.name:
        yield f"{made}, this is {trial.strategy.name}"
    if meta.precision != trial.execution.precision:
        yield f"the checkpoint was made in {meta.precision}, this goes on in {trial.execution.precision}"


def _seats(count: int) -> str:
    return f"{count} seat{'s' if count > 1 else ''}"


def _bytes_of_state(train: TrainSpec, trial: Trial, facts: Facts) -> int:
    """Weights and optimiser state, about."""
    slots = 2 if train.optimizer != "sgd" else int(train.momentum > 0)
    return facts.parameters * (8 if trial.execution.precision == "fp64" else 4) * (1 + slots)


def _export(campaign: Campaign, last: Checkpoint | None) -> Path:
    """The last checkpoint's weights, beside the records."""
    assert last is not None, "every training ends with a checkpoint"
    weights = campaign.folder / MODEL
    write_atomic(weights, last.arrays(MODEL))
    return weights


def _following(stopping: _Stopping, watch: Watcher) -> Callable[[Event], None]:
    def follow(event: Event) -> None:
        if isinstance(event, TrialMoved):
            stopping.phase = event.phase
        watch(event)

    return follow


def _interrupted(keyboard: bool) -> Interrupted:
    return Interrupted(keyboard=keyboard, next_step="the same command with --resume goes on")


@contextmanager
def _stopping() -> Iterator[_Stopping]:
    """Have the first SIGTERM or SIGINT ask the seats, if there are any; whatever comes after ends it at once."""
    stopping = _Stopping()

    def on_signal(number: int, frame: object) -> None:
        del frame
        if stopping.wanted or not stopping.seated:
            raise _interrupted(number == signal.SIGINT)
        stopping.wanted, stopping.keyboard = True, number == signal.SIGINT

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
