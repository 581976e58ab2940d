"""`--set KEY=VALUE`: what it sets, how its value is read, and what it is answered with."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from escala.plan.keys import split
from escala.plan.overrides import parsed
from escala.plan.read import parse
from escala.plan.words import dotted
from escala.terms.errors import EscalaError
from escala.terms.experiment import Experiment

BASE = """\
[workload]
name = "mlp"
options = { dropout = 0.5, layers = [1, 2] }
[train]
epochs = 1
batch = 64
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 1
[[strategy]]
name = "ddp"
ways = 2
[[strategy]]
name = "data-parallel"
label = "v1.2"
ways = 2
"""


def with_set(*overrides: str, text: str = BASE) -> Experiment:
    return parse(text, "x.toml", overrides).experiment


def refused(*overrides: str, text: str = BASE) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        parse(text, "x.toml", overrides)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("override", "path", "value"),
    [
        ("train.batch=256", "train.batch", 256),
        (" train . batch = 256 ", "train.batch", 256),
        ("train.lr=1e-3", "train.lr", 0.001),
        ("workload.data=/a/b", "workload.data", "/a/b"),
        ("workload.data=/a=b", "workload.data", "/a=b"),
        ('workload.data=["a", "b"]', "workload.data", ("a", "b")),
        ("workload.data='256'", "workload.data", "256"),
        ("title=fast", "title", "fast"),
        ("title=2024-01-01", "title", "2024-01-01"),
        ("title=", "title", ""),
        ("title=1\n[a]\nb = 2", "title", "1\n[a]\nb = 2"),
        ("measure.repeats=9", "measure.repeats", 9),
        ("measure.meters=[]", "measure.meters", ()),
        ("workload.options.dropout=0", "workload.options", {"dropout": 0, "layers": [1, 2]}),
        ("workload.options.layers.1=7", "workload.options", {"dropout": 0.5, "layers": [1, 7]}),
        ("workload.options.a.b=x", "workload.options", {"dropout": 0.5, "layers": [1, 2], "a": {"b": "x"}}),
        ("workload.options={}", "workload.options", {}),
        ("strategy.0.device=cpu", "strategy.0.device", "cpu"),
        ("strategy.single.device=cpu", "strategy.0.device", "cpu"),
        ("strategy.data-parallel.ways=4", "strategy.3.ways", 4),
        ('strategy."v1.2".ways=4', "strategy.3.ways", 4),
        ('strategy."ddp x2".ways=4', "strategy.2.ways", 4),
        ("strategy.ddp x2.ways=4", "strategy.2.ways", 4),
        ("strategy.2.train.batch=8", "strategy.2.train", {"batch": 8}),
        ('sweep."train.batch"=[64, 128]', "sweep", {"train.batch": [64, 128]}),
        ("sweep.train.batch=[64, 128]", "sweep", {"train.batch": [64, 128]}),
        ("sweep={train={lr=[0.1]}}", "sweep", {"train.lr": [0.1]}),
    ],
)
def test_an_override_sets_its_key_and_nothing_else(override: str, path: str, value: object) -> None:
    experiment = with_set(override)
    found: Any = experiment
    for part in path.split("."):
        found = found[int(part)] if part.isdigit() else getattr(found, part)
    assert found == value
    assert type(found) is type(value)
    root = path.split(".")[0]
    untouched = with_set()
    for key in Experiment.__struct_fields__:
        if key != root:
            assert getattr(experiment, key) == getattr(untouched, key)


def test_of_two_overrides_of_a_key_the_last_counts() -> None:
    assert with_set("train.batch=1", "train.batch=2").train.batch == 2


def test_one_budget_takes_the_place_of_the_other() -> None:
    train = with_set("train.steps=5").train
    assert (train.epochs, train.steps) == (None, 5)
    train = with_set("train.epochs=2", text=BASE.replace("epochs = 1", "steps = 5")).train
    assert (train.epochs, train.steps) == (2, None)
    own = BASE + "train.epochs = 3\n"
    assert with_set("strategy.3.train.steps=5", text=own).strategy[3].train == {"steps": 5}
    kept = {"train": {"epochs": 1, "steps": 2}}
    assert with_set("workload.options.train={epochs=1}", "workload.options.train.steps=2").workload.options == {
        "dropout": 0.5,
        "layers": [1, 2],
        **kept,
    }


def test_two_budgets_from_the_command_line_contradict_each_other() -> None:
    error = refused("train.steps=5", "train.epochs=2")
    assert (error.code, error.where) == ("CFG-BUDGET", "--set train.steps=5")


@pytest.mark.parametrize(
    "override",
    ["", "train.batch", "=5", ".=5", "train.=5", "train..batch=5", '"train.batch=5', "tr'ain.batch=5",
     '"a"b=5', "train.\udce4=5", "train.batch=\udce4", '"\\x".a=1', "a." * 40 + "a=1"],
)  # fmt: skip
def test_what_is_no_override_is_refused_with_an_example(override: str) -> None:
    error = refused(override)
    assert error.code == "CFG-SET"
    assert error.where.startswith("--set")
    assert "train.batch=256" in error.expected
    assert str(error).isprintable()


@pytest.mark.parametrize(
    ("override", "what", "step"),
    [
        ("train.learing_rate=1", "unknown key learing_rate in [train]", "did you mean lr?"),
        ("trian.lr=1", "unknown key trian in the experiment", "did you mean train?"),
        ("trian=1", "unknown key trian", "did you mean train?"),
        ("strategy.0.wys=1", "unknown key wys in [strategy.0]", "did you mean ways?"),
        ("strategy.0.train.epoch=1", "unknown key epoch in [strategy.0.train]", "did you mean epochs?"),
        ("train.batch.size=1", "unknown key size in [train.batch]", ""),
        ("workload.options.dropout.p=1", "unknown key p", ""),
        ("strategy.dpp.ways=1", 'strategy has no "dpp"', "did you mean ddp?"),
        ("strategy.4.ways=1", 'strategy has no "4"', ""),
        ("strategy.-1.ways=1", 'strategy has no "-1"', ""),
        ("strategy.ddp.ways=4", '2 strategies are called "ddp"', "use the number"),
        ("workload.options.layers.2=1", 'workload.options.layers has no "2"', ""),
    ],
)
def test_a_key_that_does_not_exist_is_named_with_the_nearest(override: str, what: str, step: str) -> None:
    error = refused(override)
    assert (error.code, error.where) == ("CFG-KEY", f"--set {override}")
    assert what in error.what
    assert error.next_step == step


def test_strategies_are_listed_with_their_numbers() -> None:
    assert refused("strategy.ddp.ways=4").expected == "there are: 0 single, 1 ddp x1, 2 ddp x2, 3 v1.2"


@pytest.mark.parametrize(
    ("override", "code"),
    [
        ("train.batch=0", "CFG-RANGE"),
        ("train.lr=nan", "CFG-RANGE"),
        ("train.lr=fast", "CFG-TYPE"),
        ("train.batch=", "CFG-TYPE"),
        ("train.batch=[1", "CFG-TYPE"),
        ("train.optimizer=sgdd", "CFG-VALUE"),
        ("train={batch=1, lrr=2}", "CFG-KEY"),
        ("strategy=[{ways=2}]", "CFG-MISSING"),
        ("strategy.1.ways=2", "CFG-DUP"),
        ("strategy.1.label=single", "CFG-DUP"),
        ("strategy.0.label=v1.2", "CFG-DUP"),
        ("measure.baseline=x", "CFG-VALUE"),
        ("sweep.train.batch=64", "CFG-TYPE"),
        ("sweep.train.bach=[64]", "CFG-KEY"),
        ("sweep=5", "CFG-TYPE"),
        ("workload.options.a=nan", "CFG-RANGE"),
    ],
)
def test_the_place_of_a_wrong_value_is_the_override(override: str, code: str) -> None:
    error = refused("train.momentum=0.5", override, "train.weight_decay=0")
    assert (error.code, error.where) == (code, f"--set {override}")


def test_a_fault_of_the_file_keeps_its_line_beside_overrides() -> None:
    text = BASE.replace("batch = 64", "batch = 0")
    assert refused("train.lr=0.1", "measure.repeats=3", text=text).where == "x.toml:6"
    assert with_set("train.batch=1", text=text).train.batch == 1


def test_an_override_into_a_broken_file_is_refused_in_words() -> None:
    assert refused("sweep.train.lr=[1]", text=f"sweep = 5\n{BASE}").code == "CFG-KEY"
    assert refused("train.lr=1", text="train = 5").code == "CFG-KEY"
    assert refused("strategy.0.ways=1", text="").code == "CFG-KEY"
    assert refused("strategy.ddp.ways=1", text="strategy = [1, {ways = 'x'}, {}]").code == "CFG-KEY"


@pytest.mark.parametrize("depth", [40, 400, 100_000])
def test_a_value_nested_without_end_is_refused(depth: int) -> None:
    error = refused(f"workload.options={{a={'[' * depth}{']' * depth}}}")
    assert error.code == "CFG-TYPE"
    assert error.where.startswith("--set workload.options={a=[[[")
    assert refused("sweep=" + "{a=" * depth + "[1]" + "}" * depth).code in ("CFG-KEY", "CFG-TYPE")


def test_a_long_override_is_cut_on_the_error_line() -> None:
    assert len(str(refused(f"train.lr={'x' * 10_000}"))) < 300


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@settings(deadline=None)
@given(st.lists(TEXT, min_size=1, max_size=5).map(tuple))
@example(("\U000e0001", "\x7f", "\x00", "\n", '"', "\\", "'", "é", "", "="))
def test_any_key_can_be_written_and_is_read_back(parts: tuple[str, ...]) -> None:
    assert split(dotted(parts)) == (parts, None)
    assert parsed(f"{dotted(('title', *parts))}=1") == (("title", *parts), 1)


@settings(deadline=None)
@given(st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(), st.booleans(), TEXT.map(lambda text: f"x{text}")))
def test_any_value_in_toml_is_read_back(value: object) -> None:
    written = (
        json.dumps(value)
        if isinstance(value, bool)
        else dotted(("=", value))[4:]
        if isinstance(value, str)
        else repr(value)
    )
    if isinstance(value, str) and not written.startswith('"'):
        written = f'"{written}"'
    _, found = parsed(f"title={written}")
    assert repr(found) == repr(value)


@settings(deadline=None)
@given(TEXT)
def test_what_is_no_toml_is_taken_as_it_stands(text: str) -> None:
    try:
        tomllib.loads(f"value = {text.strip()}")
    except tomllib.TOMLDecodeError:
        assert parsed(f"title={text}") == (("title",), text.strip())


@settings(deadline=None)
@given(st.integers(1, 2**31), st.floats(1e-9, 1e3))
def test_numbers_reach_the_experiment_unchanged(batch: int, lr: float) -> None:
    train = with_set(f"train.batch={batch}", f"train.lr={lr!r}").train
    assert (train.batch, train.lr) == (batch, lr)


PIECES = ["train", ".", "=", "batch", "strategy", "0", "ddp", "sweep", "[1]", "5", '"', "'", " ", "nan", "\n"]
PIECES += ["options", "workload", "measure", "[", "]", ",", "\\", "[[a]]", "epochs", "steps", "x", "{", "}"]


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=9).map("".join), min_size=1, max_size=3))
@example(["sweep={}", "sweep.x=1"])
@example(["title=1\n[a]"])
def test_any_override_is_taken_or_refused(overrides: list[str]) -> None:
    try:
        assert isinstance(with_set(*overrides), Experiment)
    except EscalaError as error:
        refusal = error
    else:
        return
    assert refusal.code.startswith("CFG-")
    assert str(refusal).isprintable()
