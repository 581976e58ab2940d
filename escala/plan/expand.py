"""Experiment x Host -> Trials: every run decided before any device is touched."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from escala.execution.blocks import fewest
from escala.execution.schedule import total_steps
from escala.plan.preflight import Facts, Preflight, Question
from escala.plan.read import Variation, label_of, resolved, variations
from escala.plan.seated import seated
from escala.plan.traces import keys_of
from escala.plan.until import check_until
from escala.strategies import STRATEGIES
from escala.strategies.seating import share_of
from escala.terms.errors import EscalaError
from escala.terms.experiment import ExecutionSpec, Experiment, StrategySpec, TrainSpec, WorkloadSpec
from escala.terms.trial import Role, Seat, StrategyUse, Trial

_SHOWN = 5


def workloads_of(experiment: Experiment) -> tuple[WorkloadSpec, ...]:
    """The different workloads of an experiment, sweeps included."""
    found = list[WorkloadSpec]()
    for variation in variations(experiment):
        if variation.experiment.workload not in found:
            found.append(variation.experiment.workload)
    return tuple(found)


def question_of(experiment: Experiment, *, prepare: bool = False) -> Question:
    """What must be known before its trials; `prepare`: arrays for the seats, too."""
    return Question(workloads_of(experiment), prepare, keys_of(experiment), experiment.measure.memory_gib)


def trials(experiment: Experiment, before: Preflight) -> tuple[Trial, ...]:
    """All trials in running order: rounds of one repeat of each, every round in a seeded random order.

    With `measure.energy_repeats` rounds that read energy are spread evenly between those that only time. A trial that
    does not fit stands once, first, with its reason. Raises `CFG-VALUE` for an unknown strategy, `CFG-SHARDS` where a
    seat would have no rows, what `check_until` raises.
    """
    everywhere = experiment.measure.repeats
    rows = [
        (_first_repeat(variation, spec, before), repeats)
        for variation in variations(experiment)
        for spec in variation.experiment.strategy
        if (repeats := everywhere if spec.repeats is None else spec.repeats)
    ]
    ordered = [trial for trial, _ in rows if trial.unfit is not None]
    for role, repeat in rounds(max((repeats for _, repeats in rows), default=0), experiment.measure.energy_repeats):
        a_round = [
            _repeated(trial, role, repeat + (repeats if role == "energy" else 0))
            for trial, repeats in rows
            if trial.unfit is None and (role == "energy" or repeat < repeats)
        ]
        seed = f"{experiment.measure.order_seed} {repeat}" + (" energy" if role == "energy" else "")
        random.Random(seed).shuffle(a_round)  # noqa: S311 - an order, no secret
        ordered += a_round
    if experiment.measure.profile is not None:
        # Last, so that whoever cannot wait has all times by then. A peer's loop is not ours to look into.
        ordered += [
            _repeated(trial, "profile", repeats + (experiment.measure.energy_repeats or 0))
            for trial, repeats in rows
            if trial.unfit is None and trial.peer is None
        ]
    return tuple(ordered)


def rounds(repeats: int, energy_repeats: int | None) -> list[tuple[Role, int]]:
    """What each round is for, and its number among those of its kind: `E TTTTT E TTTTT E` for 10 and 3.

    The order of the thesis whose experiments the study `energy` does again. Without rounds for energy each round does
    both: who asks for no runs of their own does not mean that no joule be read.
    """
    if not energy_repeats:
        return [("both", repeat) for repeat in range(repeats)]
    found: list[tuple[Role, int]] = [("time", repeat) for repeat in range(repeats)]
    for number in reversed(range(energy_repeats)):
        found.insert(round(number * repeats / max(1, energy_repeats - 1)), ("energy", number))
    return found


def as_written(found: Iterable[Trial], experiment: Experiment) -> tuple[Trial, ...]:
    """The same trials in the experiment's order: cases and sweep points, in each its strategies, then repeats."""
    rows = [
        (_point_key(variation.point), label_of(spec))
        for variation in variations(experiment)
        for spec in variation.experiment.strategy
    ]
    places = {row: place for place, row in enumerate(rows)}
    return tuple(sorted(found, key=lambda trial: (places[_point_key(trial.point), trial.label], trial.repeat)))


def _point_key(point: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(point)


def _first_repeat(variation: Variation, spec: StrategySpec, before: Preflight) -> Trial:
    train, execution = resolved(variation.experiment, spec)
    workload = variation.experiment.workload
    facts = before.of(workload)
    use = StrategyUse(spec.name, spec.ways, spec.device or before.host.best, spec.simulate, spec.options)
    seats, unfit = seated(use, spec.peer, train, execution, facts, before.host)
    label = spec.label or label_of(spec)
    _check_shards(label, train, seats, facts, execution.unit)
    _check_gradients(label, use, execution, facts)
    _check_warm_up(label, train, facts)
    check_until(label, train, facts)
    trial = Trial(
        id="",
        label=label,
        workload=workload.name,
        options=facts.options,
        data=facts.data,
        validation=workload.validation,
        limit=workload.limit,
        strategy=use,
        execution=execution,
        train=train,
        batch=train.batch,
        seats=seats,
        seed=train.seed,
        repeat=0,
        point=variation.point,
        unfit=unfit,
        peer=spec.peer,
        memory_gib=variation.experiment.measure.memory_gib,
    )
    return _identified(trial)


def _repeated(trial: Trial, role: Role, repeat: int) -> Trial:
    """Every repeat has its own seed, so that the spread over repeats is that of initial weights and orders too."""
    return _identified(msgspec.structs.replace(trial, role=role, repeat=repeat, seed=trial.train.seed + repeat))


def _check_shards(label: str, train: TrainSpec, seats: tuple[Seat, ...], facts: Facts, unit: int) -> None:
    training = facts.use.rows["train"]
    if training == 0:
        raise EscalaError(
            "CFG-SHARDS", "workload", "no training rows are left", next_step="lower workload.validation"
        )
    smallest = min(train.batch, training)
    shares = ((seat.rank, share_of(seat.rows, train.batch, smallest, unit)) for seat in seats)
    empty = [rank for rank, share in shares if share.start == share.stop]
    if empty:
        ranks = ", ".join(str(rank) for rank in empty)
        fewest_rows = fewest(len({seat.share for seat in seats}), unit)
        ghosts = "" if unit == 1 else f" in ghosts of {unit}"
        raise EscalaError(
            "CFG-SHARDS",
            f"strategy {label}",
            f"rank {ranks} would have no rows: {smallest} rows a step{ghosts}, {len(seats)} seats",
            expected=f"a batch and a training set of at least {fewest_rows} rows",
            next_step=f"raise train.batch or lower ways{ghosts and ', or the N of ghost:N'}",
        )


def _check_gradients(label: str, use: StrategyUse, execution: ExecutionSpec, facts: Facts) -> None:
    """DDP waits in vain for the gradient of a parameter that has none."""
    if facts.unused and execution.unused == "stop" and STRATEGIES[use.name].grouped:
        names = ", ".join(facts.unused[:_SHOWN]) + ("" if len(facts.unused) <= _SHOWN else ", ...")
        raise EscalaError(
            "MODEL-UNUSED",
            f"strategy {label}",
            f"{len(facts.unused)} parameters of {facts.spec.name} get no gradient: {names}",
            next_step='take them out, or set execution.unused = "detect", which looks for them in every step',
        )


def _check_warm_up(label: str, train: TrainSpec, facts: Facts) -> None:
    steps = total_steps(train, facts.use.rows["train"])
    if train.warmup_steps >= steps:
        raise EscalaError(
            "CFG-RANGE",
            f"strategy {label}",
            f"train.warmup_steps = {train.warmup_steps} leaves nothing of its {steps} steps",
            expected=f"less than {steps}",
            next_step="lower train.warmup_steps, or train for longer",
        )


def _identified(trial: Trial) -> Trial:
    """With an id that a person can read and that changes with anything that could change the result."""
    decisive = msgspec.to_builtins(trial)
    usually: dict[str, Any] = {"role": "both", "peer": None, "memory_gib": {}}
    if not decisive["strategy"]["options"]:
        del decisive["strategy"]["options"]
    for key in ("id", "seats", "unfit", *(key for key, value in usually.items() if decisive[key] == value)):
        del decisive[key]
    # Keys at their defaults are left out, so that a later version with more keys gives the same trial the same id.
    for key, kind in (("train", TrainSpec), ("execution", ExecutionSpec)):
        usual = msgspec.to_builtins(kind())
        decisive[key] = {name: value for name, value in decisive[key].items() if value != usual[name]}
    text = msgspec.json.encode(decisive, order="deterministic")
    words = [trial.label, *(str(value) for value in trial.point.values()), f"r{trial.repeat}"]
    slug = "-".join(re.sub(r"[^a-z0-9.]+", "-", word.lower()).strip("-") for word in words)
    return msgspec.structs.replace(trial, id=f"{slug[:60]}-{hashlib.blake2b(text, digest_size=4).hexdigest()}")
