"""Sweeps and what each strategy runs with."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escala.plan.read import label_of, parse, resolved, variations
from escala.plan.vary import MOST_POINTS
from escala.terms.errors import EscalaError
from escala.terms.experiment import Device, ExecutionSpec, Experiment, StrategySpec, TrainSpec, WorkloadSpec

BASE = """\
[workload]
name = "mlp"
[train]
epochs = 1
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
"""


def experiment(lines: str) -> Experiment:
    return parse(f"{BASE}{lines}", "x.toml").experiment


def refused(lines: str) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        experiment(lines)
    return caught.value


@pytest.mark.parametrize(
    ("spec", "label"),
    [
        (StrategySpec("single"), "single"),
        (StrategySpec("single", device="cpu"), "single cpu"),
        (StrategySpec("ddp"), "ddp x1"),
        (StrategySpec("ddp", ways=2), "ddp x2"),
        (StrategySpec("ddp", ways=2, device="cpu", simulate=True), "ddp x2 cpu simulated"),
        (StrategySpec("ddp", ways=2, simulate=True), "ddp x2 simulated"),
        (StrategySpec("ddp", ways=2, device="cuda", label="mine"), "mine"),
    ],
)
def test_a_strategy_without_a_label_is_called_by_what_it_is(spec: StrategySpec, label: str) -> None:
    assert label_of(spec) == label


def test_without_a_sweep_there_is_the_experiment_itself() -> None:
    whole = experiment("")
    (only,) = variations(whole)
    assert only.point == {}
    assert only.experiment is whole


def test_a_sweep_makes_a_grid_with_the_first_key_slowest() -> None:
    whole = experiment('[sweep]\n"train.batch" = [64, 128]\ntrain.lr = [1, 0.5]\n')
    assert whole.sweep == {"train.batch": [64, 128], "train.lr": [1, 0.5]}
    found = variations(whole)
    assert [tuple(variation.point.values()) for variation in found] == [(64, 1), (64, 0.5), (128, 1), (128, 0.5)]
    assert [(v.experiment.train.batch, v.experiment.train.lr) for v in found] == [
        (64, 1.0), (64, 0.5), (128, 1.0), (128, 0.5)]  # fmt: skip
    assert all(isinstance(variation.experiment.train.lr, float) for variation in found)
    assert all(variation.experiment.sweep == {} for variation in found)
    assert all(variation.experiment.strategy == whole.strategy for variation in found)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ('"strategy.ddp.ways" = [2, 4]', lambda e: e.strategy[1].ways),
        ("strategy.1.ways = [2, 4]", lambda e: e.strategy[1].ways),
        ('strategy."ddp x2".ways = [2, 4]', lambda e: e.strategy[1].ways),
        ("workload.options.dropout = [2, 4]", lambda e: e.workload.options["dropout"]),
        ('"workload.options.a.b" = [2, 4]', lambda e: e.workload.options["a"]["b"]),
        ("strategy.1.train.batch = [2, 4]", lambda e: e.strategy[1].train["batch"]),
        ("train.epochs = [2, 4]", lambda e: e.train.epochs),
        ("train.steps = [2, 4]", lambda e: e.train.steps),
        ("workload.limit = [2, 4]", lambda e: e.workload.limit),
    ],
)
def test_any_key_of_the_work_can_be_swept(line: str, read: object) -> None:
    found = variations(experiment(f"[sweep]\n{line}\n"))
    assert [read(variation.experiment) for variation in found] == [2, 4]  # type: ignore[operator]


def test_a_swept_budget_takes_the_place_of_the_other() -> None:
    for variation in variations(experiment("[sweep]\ntrain.steps = [5, 6]\n")):
        assert variation.experiment.train.epochs is None


def test_variations_share_no_table() -> None:
    first, second = variations(experiment("[workload.options]\na = 1\n[sweep]\nworkload.options.b = [1, 2]\n"))
    first.experiment.workload.options["a"] = 9
    assert second.experiment.workload.options == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("lines", "code", "where", "what"),
    [
        ('[sweep]\n"train.bach" = [1]', "CFG-KEY", 11, "unknown key bach"),
        ("[sweep]\ntrian.batch = [1]", "CFG-KEY", 11, "unknown key trian"),
        ("[sweep]\nstrategy.fsdp.ways = [1]", "CFG-KEY", 11, 'no "fsdp"'),
        ("[sweep]\nmeasure.repeats = [1]", "CFG-KEY", 11, "measure.repeats cannot be swept"),
        ("[sweep]\ntitle = ['a']", "CFG-KEY", 11, "title cannot be swept"),
        ("[sweep]\ntrain = [{lr = 1}]", "CFG-KEY", 11, "train is a table"),
        ("[sweep]\nstrategy = [[]]", "CFG-KEY", 11, "strategy is a table"),
        ("[sweep]\nstrategy.0.train = [{lr = 1}]", "CFG-KEY", 11, "is a table"),
        ("[sweep]\n'train..lr' = [1]", "CFG-KEY", 11, "no key"),
        ("[sweep]\n'train.lr=1' = [1]", "CFG-KEY", 11, "no key"),
        ("[sweep.trian]", "CFG-TYPE", 10, "sweep.trian"),
        ("[sweep]\ntrain.batch = 64", "CFG-TYPE", 11, "64 has the wrong type"),
        ("[sweep]\ntrain.batch = [\n64,\n'a']", "CFG-TYPE", 11, 'train.batch = "a"'),
        ("[sweep]\ntrain.batch = [64, 0]", "CFG-RANGE", 11, "train.batch = 0"),
        ("[sweep]\ntrain.lr = [0.1, nan]", "CFG-RANGE", 11, "nan"),
        ("[sweep]\ntrain.batch = []", "CFG-RANGE", 11, "empty"),
        ("[sweep]\ntrain.optimizer = ['sgdd']", "CFG-VALUE", 11, "sgdd"),
        ("[sweep]\nstrategy.1.train.optimizer = ['sgdd']", "CFG-VALUE", 11, "sgdd"),
        ("[sweep]\ntrain.batch = [64, 64]", "CFG-DUP", 11, "64 twice"),
        ("[sweep]\ntrain.lr = [1, 1.0]", "CFG-DUP", 11, "1.0 twice"),
        ("[sweep]\ntrain.lr = [1]\n'train.lr' = [2]", "CFG-DUP", 12, "swept twice"),
        ("[sweep]\nstrategy.1.ways = [2]\nstrategy.ddp.ways = [3]", "CFG-DUP", 12, "swept together"),
        ("[sweep]\ntrain.epochs = [2]\ntrain.steps = [3]", "CFG-DUP", 12, "swept together"),
        ("[sweep]\ntrain.lr = [2]\nstrategy.1.train.lr = [3]", "CFG-DUP", 12, "swept together"),
        ("[sweep]\nworkload.options.a = [2]\n'workload.options' = [{}]", "CFG-DUP", 12, "swept together"),
        ("train.lr = 2\n[sweep]\ntrain.lr = [3]", "CFG-DUP", 12, "strategy.1.train.lr is set"),
        ("train.steps = 2\n[sweep]\ntrain.epochs = [3]", "CFG-DUP", 12, "strategy.1.train.steps is set"),
    ],
)
def test_a_sweep_that_is_no_grid_is_refused_at_its_line(lines: str, code: str, where: int, what: str) -> None:
    error = refused(lines)
    assert (error.code, error.where) == (code, f"x.toml:{where}")
    assert what in error.what


def test_a_grid_too_large_to_run_is_refused_before_it_is_made() -> None:
    keys = ("batch", "epochs", "seed", "lr", "weight_decay")
    lines = "\n".join(f"train.{key} = {list(range(1, 200))}" for key in keys)
    error = refused(f"[sweep]\n{lines}")
    assert (error.code, error.where) == ("CFG-RANGE", "x.toml:10")
    assert f"{MOST_POINTS:,}" in error.expected


def test_rules_hold_at_every_point_of_the_grid() -> None:
    error = refused('[[strategy]]\nname = "ddp"\nways = 4\n[sweep]\nstrategy.1.ways = [2, 4]\n')
    assert (error.code, error.where) == ("CFG-DUP", "x.toml:14")
    assert "at strategy.1.ways = 4" in error.what
    error = refused('[measure]\nbaseline = "ddp x2"\n[sweep]\nstrategy.1.ways = [2, 4]\n')
    assert (error.code, error.where) == ("CFG-VALUE", "x.toml:13")
    # The file is wrong without the sweep, too: its own line is to blame.
    error = refused('[measure]\nbaseline = "ddp x9"\n[sweep]\ntrain.batch = [2, 4]\n')
    assert (error.code, error.where) == ("CFG-VALUE", "x.toml:11")


def test_a_sweep_may_bring_what_the_file_leaves_out() -> None:
    text = f"{BASE}[sweep]\ntrain.epochs = [1, 2]\n".replace("epochs = 1\n", "", 1)
    assert len(variations(parse(text, "x.toml").experiment)) == 2


@pytest.mark.parametrize("override", ["train.batch=5", "train.steps=5", "workload.options.a.b=1"])
def test_an_override_of_what_is_swept_would_change_nothing_and_is_refused(override: str) -> None:
    lines = "[sweep]\ntrain.batch = [1, 2]\ntrain.epochs = [1]\nworkload.options.a = [1]\n"
    with pytest.raises(EscalaError) as caught:
        parse(BASE + lines, "x.toml", [override])
    assert (caught.value.code, caught.value.where) == ("CFG-SET", f"--set {override}")
    assert "is swept by x.toml:1" in caught.value.what
    assert "sweep." in caught.value.next_step


def test_a_sweep_from_the_command_line_takes_the_place_of_the_files() -> None:
    text = f"{BASE}[sweep]\ntrain.batch = [1, 2]\n"
    whole = parse(text, "x.toml", ["sweep.train.batch=[7]"]).experiment
    assert [variation.point for variation in variations(whole)] == [{"train.batch": 7}]
    assert parse(text, "x.toml", ["sweep={}"]).experiment.sweep == {}


def test_variations_of_an_experiment_made_in_code_are_checked() -> None:
    made = Experiment(WorkloadSpec("mlp"), TrainSpec(epochs=1), (StrategySpec("single"),), sweep={"train.bach": [1]})
    with pytest.raises(EscalaError, match="unknown key bach"):
        variations(made)


@settings(deadline=None)
@given(
    st.lists(st.integers(1, 999), min_size=1, max_size=5, unique=True),
    st.lists(st.integers(0, 999), min_size=1, max_size=5, unique=True),
    st.lists(st.sampled_from(["cpu", "cuda", "mps"]), min_size=1, max_size=3, unique=True),
)
def test_a_grid_holds_every_combination_once(batches: list[int], seeds: list[int], devices: list[Device]) -> None:
    made = Experiment(
        WorkloadSpec("mlp"),
        TrainSpec(epochs=1),
        (StrategySpec("single"),),
        sweep={"train.batch": batches, "train.seed": seeds, "strategy.0.device": devices},
    )
    found = variations(made)
    assert len(found) == math.prod(map(len, (batches, seeds, devices)))
    points = [(batch, seed, device) for batch in batches for seed in seeds for device in devices]
    assert [tuple(variation.point.values()) for variation in found] == points
    inside = [(v.experiment.train.batch, v.experiment.train.seed, v.experiment.strategy[0].device) for v in found]
    assert inside == points


def test_a_strategys_own_keys_are_laid_over_the_experiments() -> None:
    whole = experiment("train = { batch = 8, lr = 1 }\nexecution.precision = 'fp64'\n")
    train, execution = resolved(whole, whole.strategy[1])
    assert train == TrainSpec(batch=8, epochs=1, lr=1.0)
    assert execution == ExecutionSpec("fp64")
    assert resolved(whole, whole.strategy[0]) == (whole.train, whole.execution)


def test_a_strategys_own_budget_drops_the_experiments() -> None:
    whole = experiment("train.steps = 7\n")
    train, _ = resolved(whole, whole.strategy[1])
    assert (train.epochs, train.steps) == (None, 7)
