"""Published figures must belong to a row of their own experiment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from escala.plan.explain import Fault, no_choice
from escala.plan.keys import label_of
from escala.plan.locate import Path
from escala.plan.vary import Targets, grid
from escala.plan.words import dotted, shown
from escala.terms.experiment import Experiment
from escala.terms.published import UNITS, PublishedSpec
from escala.terms.words import did_you_mean, nearest


def misplaced(experiment: Experiment, targets: Targets) -> Iterator[Fault]:
    """What is wrong with the published figures of an experiment; `targets` as from `targets_of`."""
    if experiment.published and experiment.source is None:
        what, expected = "source is missing", "published figures need a table [source] with work = ..."
        yield Fault("CFG-MISSING", ("published", 0), what, expected)
    strategies = (strategy for variation in grid(experiment, targets) for strategy in variation.experiment.strategy)
    labels = list(dict.fromkeys(label_of(strategy) for strategy in strategies))
    seen: list[tuple[object, ...]] = []
    for number, entry in enumerate(experiment.published):
        path: Path = ("published", number)
        yield from _names(entry, path, labels, [case.name for case in experiment.case])
        yield from _point(entry, path, experiment)
        if entry.unit not in UNITS[entry.figure]:
            yield no_choice(entry.unit, list(UNITS[entry.figure]), (*path, "unit"))
        if entry.against is not None and not entry.figure.startswith(("speed-up", "efficiency", "EDP")):
            what = f"{dotted((*path, 'against'))} is given for {shown(entry.figure)}"
            allowed = "only speed-ups, efficiencies and EDP are against a row"
            yield Fault("CFG-VALUE", (*path, "against"), what, allowed)
        place = (entry.row, entry.figure, entry.case, entry.against, sorted(entry.point.items()))
        if place in seen:
            yield Fault("CFG-DUP", path, f"{shown(entry.figure)} of {shown(entry.row)} is published twice")
        seen.append(place)


def _names(entry: PublishedSpec, path: Path, labels: list[str], cases: list[str]) -> Iterator[Fault]:
    known: Iterable[tuple[str, str | None, list[str]]] = (
        ("row", entry.row, labels),
        ("against", entry.against, labels),
        ("case", entry.case, cases),
    )
    for key, name, names in known:
        if name is not None and name not in names:
            yield no_choice(name, names, (*path, key))


def _point(entry: PublishedSpec, path: Path, experiment: Experiment) -> Iterator[Fault]:
    for key, value in entry.point.items():
        place = (*path, "point", key)
        if key not in experiment.sweep:
            known = f"keys there: {', '.join(experiment.sweep)}"
            step = did_you_mean(nearest(key, experiment.sweep))
            yield Fault("CFG-KEY", place, f"{key} is not swept", known, step)
        elif value not in experiment.sweep[key]:
            yield no_choice(shown(value), [shown(one) for one in experiment.sweep[key]], place)
