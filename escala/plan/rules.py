"""What must hold for an experiment as a whole, in every case and at every point of its sweep."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from escala.peers import PEERS
from escala.plan.explain import Fault, no_choice, unknown_option
from escala.plan.keys import label_of
from escala.plan.locate import Path
from escala.plan.metering import meter_faults
from escala.plan.until import Told, until_faults
from escala.plan.vary import Targets, grid, resolved
from escala.plan.words import dotted, shown
from escala.strategies import STRATEGIES
from escala.terms.experiment import ExecutionSpec, Experiment, StrategySpec, TrainSpec

_ONE_BUDGET = "exactly one of train.epochs and train.steps"


def broken(experiment: Experiment, targets: Targets) -> Iterator[Fault]:
    """The rules that an experiment breaks; `targets` as from `targets_of`."""
    yield from _cases(experiment, targets)
    plain = set(_broken_here(msgspec.structs.replace(experiment, sweep={}, case=())))
    names = [case.name for case in experiment.case]
    for variation in grid(experiment, targets):
        for fault in _broken_here(variation.experiment):
            if fault in plain:
                yield fault
            else:
                # The file's own values are in order, so the varied ones are to blame.
                point = ", ".join(f"{key} = {shown(value)}" for key, value in variation.point.items())
                path: Path = (
                    ("case", names.index(variation.point["case"])) if names else ("sweep", *targets.sweep)[:2]
                )
                yield fault._replace(path=path, what=f"{fault.what}, at {point}")


def _cases(experiment: Experiment, targets: Targets) -> Iterator[Fault]:
    names: list[str] = []
    settings: list[dict[Path, bytes]] = []
    for number, (case, paths) in enumerate(zip(experiment.case, targets.cases, strict=True)):
        path: Path = ("case", number, "name")
        own = {target: msgspec.json.encode(case.set[key], order="deterministic") for key, target in paths.items()}
        if not case.name.strip():
            yield Fault("CFG-RANGE", path, f"{dotted(path)} is empty", "one sign or more")
        elif case.name in names:
            yield Fault("CFG-DUP", path, f"two cases are named {shown(case.name)}", "", "rename one of the two")
        elif own in settings:
            twin = names[settings.index(own)]
            what = f"case {shown(case.name)} sets the same as case {shown(twin)}"
            yield Fault("CFG-DUP", ("case", number), what, "", "take one away")
        names.append(case.name)
        settings.append(own)


def _broken_here(experiment: Experiment) -> Iterator[Fault]:
    yield from _budgets(experiment)
    yield from _twins(experiment)
    yield from _labels(experiment)
    yield from _peers(experiment)
    yield from _options(experiment)
    yield from _recipes(experiment)
    yield from meter_faults(experiment.measure)


def _budgets(experiment: Experiment) -> Iterator[Fault]:
    train = experiment.train
    if train.epochs is None and train.steps is None:
        what = "neither train.epochs nor train.steps is given"
        yield Fault("CFG-BUDGET", ("train",), what, _ONE_BUDGET, "add epochs = 1 to [train]")
    if train.epochs is not None and train.steps is not None:
        what = "train.epochs and train.steps are both given"
        yield Fault("CFG-BUDGET", ("train", "steps"), what, _ONE_BUDGET, "keep one of the two")
    for index, strategy in enumerate(experiment.strategy):
        if {"epochs", "steps"} <= strategy.train.keys():
            path = ("strategy", index, "train", "steps")
            what = f"strategy {label_of(strategy)} has both train.epochs and train.steps"
            yield Fault("CFG-BUDGET", path, what, _ONE_BUDGET, "keep one of the two")


def _recipes(experiment: Experiment) -> Iterator[Fault]:
    """Learning rates and microbatches that do not go together with the rest, each said once."""
    told = set[str]()
    for index, strategy in enumerate(experiment.strategy):
        train, execution = resolved(experiment, strategy)
        untils = until_faults(train, experiment.workload.validation)
        choices = (*_microbatch(strategy, train, execution), *_choices(execution))
        for code, key, what, expected, step in (*_rates(train), *untils, *choices):
            if what not in told:
                told.add(what)
                own = key in strategy.train or key in strategy.execution
                table = "execution" if key in ExecutionSpec.__struct_fields__ else "train"
                path: Path = ("strategy", index, table, key) if own else (table,)
                yield Fault(code, path, what, expected, step)


def _rates(train: TrainSpec) -> Iterator[Told]:
    if train.lr_rule != "none" and train.base_batch is None:
        what = f"train.lr_rule = {train.lr_rule} without train.base_batch"
        yield "CFG-VALUE", "lr_rule", what, "the batch that train.lr is meant for", f"add base_batch = {train.batch}"
    if train.schedule == "step" and train.decay_steps is None:
        what = "train.schedule = step without train.decay_steps"
        yield "CFG-VALUE", "schedule", what, "optimiser steps between two decays", "add decay_steps = 1000"


def _microbatch(strategy: StrategySpec, train: TrainSpec, execution: ExecutionSpec) -> Iterator[Told]:
    if execution.at_once is None:
        return
    if execution.at_once % execution.unit:
        what = f"execution.microbatch = {execution.at_once} cuts ghosts of {execution.unit} rows"
        above = -(-execution.at_once // execution.unit) * execution.unit
        yield "CFG-BATCH", "microbatch", what, f"a multiple of {execution.unit}", f"set microbatch = {above}"
        return
    known = STRATEGIES.get(strategy.name)
    # The kind of device changes nothing about how rows are divided.
    shares = known(strategy.ways, "cpu", strategy.simulate, strategy.options).shares if known is not None else 1
    unit = shares * execution.at_once
    if train.batch % unit == 0:
        return
    below, above = train.batch // unit * unit, -(-train.batch // unit) * unit
    nearest = f"{below} or {above}" if below else str(above)
    what = f"a batch of {train.batch} is no multiple of {unit}: {label_of(strategy)} has {shares} x microbatches of "
    yield "CFG-BATCH", "microbatch", what + str(execution.at_once), f"nearest: {nearest}", f"set batch = {above}"


def _choices(execution: ExecutionSpec) -> Iterator[Told]:
    if execution.workers and execution.feed != "host":
        what = f"execution.workers = {execution.workers} with execution.feed = {execution.feed}, which has no workers"
        yield "CFG-VALUE", "workers", what, "workers of feed = host", 'set feed = "host", or leave workers out'
    if execution.static_graph and execution.unused == "detect":
        what = "execution.static_graph with execution.unused = detect, which looks again in every step"
        yield "CFG-VALUE", "static_graph", what, "one of the two", "leave one of the two out"


def _twins(experiment: Experiment) -> Iterator[Fault]:
    """Strategies that differ in nothing but their label."""
    seen: dict[object, int] = {}
    for index, strategy in enumerate(experiment.strategy):
        seated = (strategy.name, strategy.peer, strategy.ways, strategy.device, strategy.simulate, strategy.options)
        # As JSON, where a capture of 1 step and one that is true are two things.
        runs = (*seated, msgspec.json.encode(resolved(experiment, strategy)))
        first = seen.setdefault(runs, index)
        if first != index:
            what = f"strategy.{index} ({label_of(strategy)}) runs the same as strategy.{first}"
            step = "take one away; measure.repeats repeats a strategy"
            yield Fault("CFG-DUP", ("strategy", index), what, "", step, ("strategy", first))


def _peers(experiment: Experiment) -> Iterator[Fault]:
    for index, strategy in enumerate(experiment.strategy):
        if strategy.peer is None:
            continue
        if strategy.peer not in PEERS:
            yield no_choice(strategy.peer, list(PEERS), ("strategy", index, "peer"))
        elif strategy.name != "single":
            what = f"the peer {strategy.peer} cannot train as {strategy.name}"
            expected = 'a peer is one process: name = "single"'
            yield Fault("CFG-VALUE", ("strategy", index, "name"), what, expected, "set it, or leave peer out")


def _options(experiment: Experiment) -> Iterator[Fault]:
    """Options that a strategy does not take would change nothing, and nobody would notice."""
    for index, strategy in enumerate(experiment.strategy):
        # Which names there are is said elsewhere, when the host is known.
        if strategy.name in STRATEGIES:
            takes = () if strategy.peer else STRATEGIES[strategy.name].takes
            for name in msgspec.to_builtins(strategy.options):
                if name not in takes:
                    yield unknown_option(name, strategy.name, takes, ("strategy", index, "options", name))


def _labels(experiment: Experiment) -> Iterator[Fault]:
    labels: list[str] = []
    for index, strategy in enumerate(experiment.strategy):
        label = label_of(strategy)
        # A label that was made up is the fault of the whole strategy, not of a key that is not there.
        path: Path = ("strategy", index) if strategy.label is None else ("strategy", index, "label")
        if not label.strip():
            yield Fault("CFG-RANGE", path, f"{dotted(path)} is empty", "one sign or more", "leave it out")
        elif label in labels:
            what = f"two strategies are labelled {shown(label)}"
            step = 'give one of them its own label = "..."'
            yield Fault("CFG-DUP", path, what, "", step, ("strategy", labels.index(label)))
        labels.append(label)
    baseline = experiment.measure.baseline
    if baseline is not None and baseline not in labels:
        yield no_choice(baseline, labels, ("measure", "baseline"))
        return
    number = 0 if baseline is None else labels.index(baseline)
    target = experiment.measure.attribute
    if target is not None and target not in labels:
        yield no_choice(target, labels, ("measure", "attribute"))
    if experiment.strategy[number].repeats == 0:
        path = ("strategy", number, "repeats")
        yield Fault("CFG-RANGE", path, f"{labels[number]} is the baseline, and would not run", "1 repeat or more")
