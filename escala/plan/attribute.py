"""The rows that `--attribute` runs: a baseline, a target, and what lies between the two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import msgspec
from msgspec.structs import replace

from escala.plan.keys import label_of
from escala.plan.read import Loaded
from escala.plan.rules import broken
from escala.plan.vary import resolved, targets_of
from escala.plan.words import shown
from escala.terms.errors import EscalaError
from escala.terms.experiment import Experiment, StrategySpec
from escala.terms.factors import SAME, Settings, factors, mixed

MOST = 5
"""Factors of which all subsets are run; with more, a ladder that adds one after another."""
_NOT_OF_SEATS = ("label", "repeats", "execution", "train", "scaling", "peer")


def attributed(loaded: Loaded) -> Loaded:
    """The experiment with the baseline, the target and all mixtures of the two in the place of its strategies.

    The target is `measure.attribute`, or else the last strategy. Rows that the experiment has already keep their
    names. With more than five factors each row of a ladder adds one more of them. Raises CFG-ATTRIBUTE where the two
    are no pair to be taken apart, and what the rules of experiments say of a mixture.
    """
    experiment = loaded.experiment
    before, after = _ends(loaded)
    ours, theirs = _settings(experiment, before), _settings(experiment, after)
    if different := [key for key in SAME if ours.get(key) != theirs.get(key)]:
        what = f"{_pair(before, after)} differ in {', '.join(different)}"
        raise _refused(loaded, what, "two rows that do the same work", "give both the same budget")
    of = factors(ours, theirs)
    if not of:
        raise _refused(
            loaded, f"{_pair(before, after)} differ in nothing that is a factor", "", "name another target"
        )
    named = {label_of(spec): _settings(experiment, spec) for spec in experiment.strategy}
    rows = []
    for number, taken in enumerate(subsets(tuple(of))):
        settings = mixed(ours, theirs, taken, of)
        known = next((label for label, own in named.items() if own == settings), None)
        label = known if known is not None else _label(taken, tuple(of), number)
        rows.append(_spec(experiment, before, after, settings, label))
    return replace(loaded, experiment=_checked(loaded, rows, label_of(before), label_of(after)))


def subsets(names: tuple[str, ...]) -> tuple[frozenset[str], ...]:
    """Which factors each row takes from the target: none first, all last, fewer before more."""
    if len(names) > MOST:
        return tuple(frozenset(names[:count]) for count in range(len(names) + 1))
    return tuple(frozenset(some) for count in range(len(names) + 1) for some in combinations(names, count))


def _ends(loaded: Loaded) -> tuple[StrategySpec, StrategySpec]:
    experiment, measure = loaded.experiment, loaded.experiment.measure
    by_label = {label_of(spec): spec for spec in experiment.strategy}
    before = by_label[measure.baseline] if measure.baseline is not None else experiment.strategy[0]
    after = by_label[measure.attribute] if measure.attribute is not None else experiment.strategy[-1]
    if before is after:
        what = f"{shown(label_of(before))} is both the baseline and the target"
        raise _refused(loaded, what, "two rows", "set measure.attribute to the label of another row")
    for path in _varied(experiment):
        if path[0] == "strategy":
            what = "a sweep or a case sets keys of single strategies, whose places the mixtures take"
            raise _refused(loaded, what, "", "sweep keys of train, execution or workload, or leave --attribute out")
    return before, after


def _varied(experiment: Experiment) -> Iterator[tuple[str | int, ...]]:
    targets = targets_of(experiment)
    yield from targets.sweep.values()
    for case in targets.cases:
        yield from case.values()


def _settings(experiment: Experiment, spec: StrategySpec) -> dict[str, Any]:
    train, execution = resolved(experiment, spec)
    sitting = msgspec.structs.asdict(spec)
    return {
        **{f"strategy.{key}": value for key, value in sitting.items() if key not in _NOT_OF_SEATS},
        "peer": spec.peer,
        **{f"execution.{key}": value for key, value in msgspec.structs.asdict(execution).items()},
        **{f"train.{key}": value for key, value in msgspec.structs.asdict(train).items()},
    }


def _spec(
    experiment: Experiment, before: StrategySpec, after: StrategySpec, settings: Settings, label: str
) -> StrategySpec:
    """A strategy that runs as `settings` say, with keys of its own only where the two ends have some."""
    sitting = {key: settings[f"strategy.{key}"] for key in msgspec.structs.asdict(before) if key not in _NOT_OF_SEATS}
    return StrategySpec(
        **sitting,
        peer=settings["peer"],
        label=label,
        repeats=next((spec.repeats for spec in experiment.strategy if label_of(spec) == label), None),
        execution=_own(experiment.execution, before.execution | after.execution, "execution", settings),
        # Weak scaling multiplies the batch, so it is written out.
        train=_own(experiment.train, before.train | after.train | {"batch": 0}, "train", settings),
    )


def _own(shared: msgspec.Struct, keys: dict[str, Any], table: str, settings: Settings) -> dict[str, Any]:
    usual = msgspec.structs.asdict(shared)
    own = {key: settings[f"{table}.{key}"] for key in keys}
    return {key: value for key, value in own.items() if value != usual[key]}


def _label(taken: frozenset[str], names: tuple[str, ...], number: int) -> str:
    """`with precision, batch`, or what is left out where that is shorter; of a ladder its rung."""
    inside = [name for name in names if name in taken]
    outside = [name for name in names if name not in taken]
    if len(names) > MOST:
        return f"rung {number}: and {names[number - 1]}"
    return f"with {', '.join(inside)}" if len(inside) <= max(2, len(outside)) else f"all but {', '.join(outside)}"


def _checked(loaded: Loaded, rows: list[StrategySpec], baseline: str, target: str) -> Experiment:
    labels = {label_of(spec) for spec in rows}
    old = loaded.experiment
    published = tuple(
        one for one in old.published if one.row in labels and (one.against is None or one.against in labels)
    )
    measure = replace(old.measure, baseline=baseline, attribute=target)
    found = replace(old, strategy=tuple(rows), measure=measure, published=published)
    for fault in broken(found, targets_of(found)):
        raise fault.error(f"{loaded.where}, --attribute")
    return found


def _pair(before: StrategySpec, after: StrategySpec) -> str:
    return f"{shown(label_of(before))} and {shown(label_of(after))}"


def _refused(loaded: Loaded, what: str, expected: str, step: str) -> EscalaError:
    return EscalaError("CFG-ATTRIBUTE", f"{loaded.where}, --attribute", what, expected=expected, next_step=step)
