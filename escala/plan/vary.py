"""The grid of a sweep, and what one strategy of an experiment really runs with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct, inspect

from escala.plan.explain import Fault, faults
from escala.plan.keys import Misfit, drop, follow, other_budget, parts_of, put, swept
from escala.plan.locate import Path
from escala.plan.words import dotted, shown
from escala.terms.experiment import ExecutionSpec, Experiment, StrategySpec, TrainSpec

MOST_POINTS = 10_000
"""Largest grid. One beyond it is a slip of the hand: at 10 s a trial it would run for more than a day."""

_SWEPT_TABLES = ("workload", "train", "execution", "strategy")


class Variation(Struct, frozen=True):
    """One point of the sweep's grid: swept key -> value, and the experiment with those values put in."""

    point: dict[str, Any]
    experiment: Experiment


def variations(experiment: Experiment) -> tuple[Variation, ...]:
    """All points of the sweep, first key slowest; without a sweep the experiment itself with an empty point.

    Raises EscalaError if a swept key does not exist or a value does not fit it.
    """
    try:
        targets = sweep_targets(experiment)
    except Misfit as misfit:
        raise misfit.fault.error("sweep") from None
    return tuple(grid(experiment, targets))


def grid(experiment: Experiment, targets: Mapping[str, Path]) -> Iterator[Variation]:
    """The variations of an experiment whose sweep was checked; `targets` as from `sweep_targets`."""
    if not targets:
        yield Variation({}, experiment)
        return
    # Decoded anew for every point, so that no two variations share a table.
    text = msgspec.json.encode(msgspec.structs.replace(experiment, sweep={}))
    for values in itertools.product(*(experiment.sweep[key] for key in targets)):
        tree = msgspec.json.decode(text)
        for path, value in zip(targets.values(), values, strict=True):
            if other := other_budget(path):
                drop(tree, other)
            put(tree, path, value)
        yield Variation(dict(zip(targets, values, strict=True)), msgspec.convert(tree, Experiment))


def sweep_targets(experiment: Experiment) -> dict[str, Path]:
    """Swept key -> the path that it sets. Raises Misfit, its path `("sweep", key)`, for whatever is wrong."""
    tree = msgspec.json.decode(msgspec.json.encode(experiment))
    targets: dict[str, Path] = {}
    for key, values in experiment.sweep.items():
        try:
            path = _target(key, values, tree)
            _check_alone(path, targets, tree)
        except Misfit as misfit:
            raise Misfit(misfit.fault._replace(path=("sweep", key))) from None
        targets[key] = path
    if math.prod(len(values) for values in experiment.sweep.values()) > MOST_POINTS:
        allowed = f"allowed: at most {MOST_POINTS:,}"
        raise Misfit(Fault("CFG-RANGE", ("sweep",), "the sweep has too many points", allowed))
    return targets


def resolved(experiment: Experiment, strategy: StrategySpec) -> tuple[TrainSpec, ExecutionSpec]:
    """The experiment's recipe and execution with the strategy's own keys laid over them.

    A strategy that has its own budget drops the experiment's.
    """
    train = msgspec.structs.asdict(experiment.train)
    if strategy.train.keys() & {"epochs", "steps"}:
        train |= {"epochs": None, "steps": None}
    execution = msgspec.structs.asdict(experiment.execution)
    return (
        msgspec.convert(train | strategy.train, TrainSpec),
        msgspec.convert(execution | strategy.execution, ExecutionSpec),
    )


def flattened(sweep: Mapping[str, Any]) -> dict[str, Any]:
    """`[sweep]` with one dotted key for each list: `train.batch = [...]` makes a table of its own in TOML.

    Raises Misfit for what is no key, or the same key twice.
    """
    flat: dict[str, Any] = {}
    for parts, values in _leaves(sweep, ()):
        try:
            key = swept(parts)
        except ValueError as error:
            raise Misfit(Fault("CFG-KEY", ("sweep", *parts), f"{shown(parts[0])} is no key: {error}")) from None
        if key in flat:
            raise Misfit(Fault("CFG-DUP", ("sweep", *parts), f"{key} is swept twice"))
        flat[key] = values
    return flat


def _leaves(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _target(key: str, values: list[Any], tree: dict[str, Any]) -> Path:
    """The path that a swept key sets, when the key may be swept and every value fits it."""
    try:
        parts = parts_of(key)
    except ValueError as error:
        raise Misfit(Fault("CFG-KEY", (), f"{shown(key)} is no key: {error}")) from None
    path, kind = follow(parts, tree)
    if path[0] not in _SWEPT_TABLES:
        raise Misfit(Fault("CFG-KEY", path, f"{key} cannot be swept", f"keys of {', '.join(_SWEPT_TABLES)} can"))
    if isinstance(kind, inspect.StructType) or path == ("strategy",):
        raise Misfit(Fault("CFG-KEY", path, f"{key} is a table, which cannot be swept", "", "sweep one of its keys"))
    if not values:
        raise Misfit(Fault("CFG-RANGE", path, f"the sweep of {key} is empty", "1 value or more"))
    seen = set[bytes]()
    for value in values:
        if fault := next(faults(value, kind, path), None):
            raise Misfit(fault)
        plain = msgspec.json.encode(float(value) if isinstance(kind, inspect.FloatType) else value)
        if plain in seen:
            raise Misfit(Fault("CFG-DUP", path, f"the sweep of {key} holds {shown(value)} twice"))
        seen.add(plain)
    return path


def _check_alone(path: Path, targets: Mapping[str, Path], tree: dict[str, Any]) -> None:
    """Nothing but this sweep may set `path`: a record's point must be what the trial ran with."""
    mine = _claims(path, tree)
    for key, other in targets.items():
        if mine & _claims(other, tree) or path[: len(other)] == other or other[: len(path)] == path:
            what = f"{dotted(path)} is swept together with {key}, which sets it, too"
            raise Misfit(Fault("CFG-DUP", path, what, "", "keep one of the two"))
    for claim in sorted(mine, key=str) if path[0] != "strategy" else ():
        if claim[0] == "strategy" and claim[3] in tree["strategy"][claim[1]][claim[2]]:
            what = f"{dotted(path)} is swept, and {dotted(claim)} is set"
            raise Misfit(Fault("CFG-DUP", path, what, "", "keep one of the two, or sweep the strategies' own keys"))


def _claims(path: Path, tree: dict[str, Any]) -> set[Path]:
    """Every path that decides the same thing as `path`: the other budget, and the strategies' own keys."""
    paths = {path}
    if path[0] in ("train", "execution"):
        paths |= {("strategy", number, *path) for number in range(len(tree["strategy"]))}
    return paths | {other for path in paths if (other := other_budget(path))}
