"""Experiment x Host -> Trials: every run decided before any device is touched."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from escala.plan.preflight import Facts, Preflight
from escala.plan.read import Variation, label_of, resolved, variations
from escala.strategies import strategy
from escala.strategies.seating import share_of
from escala.terms.errors import EscalaError, Unfit
from escala.terms.experiment import Experiment, StrategySpec, TrainSpec, WorkloadSpec
from escala.terms.host import Host
from escala.terms.trial import Seat, StrategyUse, Trial


def workloads_of(experiment: Experiment) -> tuple[WorkloadSpec, ...]:
    """The different workloads of an experiment, sweeps included."""
    found = list[WorkloadSpec]()
    for variation in variations(experiment):
        if variation.experiment.workload not in found:
            found.append(variation.experiment.workload)
    return tuple(found)


def trials(experiment: Experiment, before: Preflight) -> tuple[Trial, ...]:
    """All trials in running order: rounds of one repeat of each, every round in a seeded random order.

    A trial that does not fit stands once, first, with its reason. Raises `CFG-VALUE` for an unknown strategy,
    `CFG-SHARDS` where a seat would have no rows.
    """
    everywhere = experiment.measure.repeats
    rows = [
        (_first_repeat(variation, spec, before), repeats)
        for variation in variations(experiment)
        for spec in variation.experiment.strategy
        if (repeats := everywhere if spec.repeats is None else spec.repeats)
    ]
    ordered = [trial for trial, _ in rows if trial.unfit is not None]
    for repeat in range(max((repeats for _, repeats in rows), default=0)):
        a_round = [_repeated(trial, repeat) for trial, repeats in rows if trial.unfit is None and repeat < repeats]
        random.Random(f"{experiment.measure.order_seed} {repeat}").shuffle(a_round)  # noqa: S311 - an order, no secret
        ordered += a_round
    return tuple(ordered)


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
    use = StrategyUse(spec.name, spec.ways, spec.device or before.host.best, spec.simulate)
    seats, unfit = _seats(use, before.host, train.batch)
    label = spec.label or label_of(spec)
    _check_shards(label, train, seats, facts)
    trial = Trial(
        id="",
        label=label,
        workload=workload.name,
        options=workload.options,
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
    )
    return _identified(trial)


def _seats(use: StrategyUse, host: Host, batch: int) -> tuple[tuple[Seat, ...], str | None]:
    try:
        return strategy(use).seats(host, batch), None
    except Unfit as reason:
        return (), str(reason)


def _repeated(trial: Trial, repeat: int) -> Trial:
    """Every repeat has its own seed, so that the spread over repeats is that of initial weights and orders too."""
    return _identified(msgspec.structs.replace(trial, repeat=repeat, seed=trial.train.seed + repeat))


def _check_shards(label: str, train: TrainSpec, seats: tuple[Seat, ...], facts: Facts) -> None:
    training = facts.use.rows["train"]
    if training == 0:
        raise EscalaError(
            "CFG-SHARDS", "workload", "no training rows are left", next_step="lower workload.validation"
        )
    smallest = min(train.batch, training)
    shares = ((seat.rank, share_of(seat.rows, train.batch, smallest)) for seat in seats)
    empty = [rank for rank, share in shares if share.start == share.stop]
    if empty:
        ranks = ", ".join(str(rank) for rank in empty)
        raise EscalaError(
            "CFG-SHARDS",
            f"strategy {label}",
            f"rank {ranks} would have no rows: {smallest} rows a step, {len(seats)} seats",
            expected=f"a batch and a training set of at least {len(seats)} rows",
            next_step="raise train.batch or lower ways",
        )


def _identified(trial: Trial) -> Trial:
    """With an id that a person can read and that changes with anything that could change the result."""
    decisive = msgspec.to_builtins(trial)
    for key in ("id", "seats", "unfit"):
        del decisive[key]
    text = msgspec.json.encode(decisive, order="deterministic")
    words = [trial.label, *(str(value) for value in trial.point.values()), f"r{trial.repeat}"]
    slug = "-".join(re.sub(r"[^a-z0-9.]+", "-", word.lower()).strip("-") for word in words)
    return msgspec.structs.replace(trial, id=f"{slug[:60]}-{hashlib.blake2b(text, digest_size=4).hexdigest()}")
