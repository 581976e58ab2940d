"""The cases and the grid of a sweep, and what one strategy of an experiment really runs with."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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

_VARIED_TABLES = ("workload", "train", "execution", "strategy")


class Variation(Struct, frozen=True):
    """One case at one point of the grid: `case` -> its name, swept key -> value; and the experiment with both."""

    point: dict[str, Any]
    experiment: Experiment


class Targets(Struct, frozen=True):
    """What is varied: swept key -> the path that it sets, and the same for the keys of each case."""

    sweep: dict[str, Path]
    cases: tuple[dict[str, Path], ...] = ()


def variations(experiment: Experiment) -> tuple[Variation, ...]:
    """Every case at all points of the sweep, in the order written, first swept key slowest.

    Without cases and a sweep it is the experiment itself with an empty point. Raises EscalaError if a key does not
    exist or a value does not fit it.
    """
    try:
        targets = targets_of(experiment)
    except Misfit as misfit:
        raise misfit.fault.error(dotted(misfit.fault.path[:2])) from None
    return tuple(grid(experiment, targets))


def grid(experiment: Experiment, targets: Targets) -> Iterator[Variation]:
    """The variations of an experiment whose sweep and cases were checked; `targets` as from `targets_of`."""
    if not targets.sweep and not targets.cases:
        yield Variation({}, experiment)
        return
    # Decoded anew for every point, so that no two variations share a table.
    text = msgspec.json.encode(msgspec.structs.replace(experiment, sweep={}, case=(), published=()))
    for point, settings in _points(experiment, targets):
        tree = msgspec.json.decode(text)
        for path, value in settings:
            if other := other_budget(path):
                drop(tree, other)
            put(tree, path, value)
        yield Variation(point, msgspec.convert(tree, Experiment))


def _points(experiment: Experiment, targets: Targets) -> Iterator[tuple[dict[str, Any], list[tuple[Path, Any]]]]:
    cases: list[tuple[dict[str, Any], list[tuple[Path, Any]]]] = [
        ({"case": case.name}, [(path, case.set[key]) for key, path in paths.items()])
        for case, paths in zip(experiment.case, targets.cases, strict=True)
    ]
    for point, settings in cases or [({}, [])]:
        for values in itertools.product(*(experiment.sweep[key] for key in targets.sweep)):
            swept_here = zip(targets.sweep.values(), values, strict=True)
            yield point | dict(zip(targets.sweep, values, strict=True)), [*settings, *swept_here]


def targets_of(experiment: Experiment) -> Targets:
    """What the sweep and the cases set.

    Raises Misfit, its path `("sweep", key)` or `("case", number, "set", key)`, for whatever is wrong.
    """
    tree = msgspec.json.decode(msgspec.json.encode(experiment))
    sweep: dict[str, Path] = {}
    for key, values in experiment.sweep.items():
        with blamed_on(("sweep", key)):
            path = _target(key, values, tree, "swept")
            _check_alone(path, sweep, tree, "swept")
        sweep[key] = path
    by_sweep = {f"the sweep of {key}": path for key, path in sweep.items()}
    cases: list[dict[str, Path]] = []
    for number, case in enumerate(experiment.case):
        paths: dict[str, Path] = {}
        for key, value in case.set.items():
            with blamed_on(("case", number, "set", key)):
                path = _target(key, [value], tree, "set by a case")
                _check_alone(path, by_sweep | paths, tree, "set by a case")
            paths[key] = path
        cases.append(paths)
    if math.prod(len(values) for values in experiment.sweep.values()) * max(1, len(cases)) > MOST_POINTS:
        allowed = f"allowed: at most {MOST_POINTS:,}"
        raise Misfit(Fault("CFG-RANGE", ("sweep",), "the sweep has too many points", allowed))
    return Targets(sweep, tuple(cases))


@contextmanager
def blamed_on(path: Path) -> Iterator[None]:
    """Give whatever Misfit is raised this path: it is the key written there that has to be changed."""
    try:
        yield
    except Misfit as misfit:
        raise Misfit(misfit.fault._replace(path=path)) from None


def resolved(experiment: Experiment, strategy: StrategySpec) -> tuple[TrainSpec, ExecutionSpec]:
    """The experiment's recipe and execution with the strategy's own keys laid over them.

    A strategy that has its own budget drops the experiment's; weak scaling multiplies the batch by the ways.
    """
    train = msgspec.structs.asdict(experiment.train)
    if strategy.train.keys() & {"epochs", "steps"}:
        train |= {"epochs": None, "steps": None}
    execution = msgspec.structs.asdict(experiment.execution)
    train |= strategy.train
    if strategy.scaling == "weak":
        train["batch"] *= strategy.ways
    return (
        msgspec.convert(train, TrainSpec),
        msgspec.convert(execution | strategy.execution, ExecutionSpec),
    )


def flattened(table: Mapping[str, Any], place: Path = ("sweep",)) -> dict[str, Any]:
    """`[sweep]`, or another table of dotted keys at `place`, with one key for each value.

    `train.batch = [...]` makes a table of its own in TOML. Raises Misfit for what is no key, or the same key twice.
    """
    flat: dict[str, Any] = {}
    for parts, values in _leaves(table, ()):
        try:
            key = swept(parts)
        except ValueError as error:
            raise Misfit(Fault("CFG-KEY", (*place, *parts), f"{shown(parts[0])} is no key: {error}")) from None
        if key in flat:
            what = f"{key} is swept twice" if place == ("sweep",) else f"{key} is set twice"
            raise Misfit(Fault("CFG-DUP", (*place, *parts), what))
        flat[key] = values
    return flat


def _leaves(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, (*path, key))
        else:
            yield (*path, key), value


def _target(key: str, values: list[Any], tree: dict[str, Any], done: str) -> Path:
    """The path that a key sets, when the key may be varied and every value fits it; `done` says how it is varied."""
    try:
        parts = parts_of(key)
    except ValueError as error:
        raise Misfit(Fault("CFG-KEY", (), f"{shown(key)} is no key: {error}")) from None
    path, kind = follow(parts, tree)
    if path[0] not in _VARIED_TABLES:
        raise Misfit(Fault("CFG-KEY", path, f"{key} cannot be {done}", f"keys of {', '.join(_VARIED_TABLES)} can"))
    if isinstance(kind, inspect.StructType) or path == ("strategy",):
        raise Misfit(Fault("CFG-KEY", path, f"{key} is a table, which cannot be {done}", "", "name one of its keys"))
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


def _check_alone(path: Path, targets: Mapping[str, Path], tree: dict[str, Any], done: str) -> None:
    """Nothing but this key may set `path`: a record's point must be what the trial ran with."""
    mine = _claims(path, tree)
    for key, other in targets.items():
        if mine & _claims(other, tree) or path[: len(other)] == other or other[: len(path)] == path:
            what = f"{dotted(path)} is {done} together with {key}, which sets it, too"
            raise Misfit(Fault("CFG-DUP", path, what, "", "keep one of the two"))
    for claim in sorted(mine, key=str) if path[0] != "strategy" else ():
        if claim[0] == "strategy" and claim[3] in tree["strategy"][claim[1]][claim[2]]:
            what = f"{dotted(path)} is {done}, and {dotted(claim)} is set"
            raise Misfit(Fault("CFG-DUP", path, what, "", "keep one of the two, or vary the strategies' own keys"))


def _claims(path: Path, tree: dict[str, Any]) -> set[Path]:
    """Every path that decides the same thing as `path`: the other budget, and the strategies' own keys."""
    paths = {path}
    if path[0] in ("train", "execution"):
        paths |= {("strategy", number, *path) for number in range(len(tree["strategy"]))}
    return paths | {other for path in paths if (other := other_budget(path))}
