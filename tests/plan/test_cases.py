"""`[[case]]`: settings that belong together; `[quick]`: the same experiment with less work."""

from __future__ import annotations

import pytest

from escala.plan.read import parse, variations
from escala.terms.errors import EscalaError

TEXT = """
[workload]
name = "mlp"
[train]
batch = 64
epochs = 2
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
[[case]]
name = "first"
set = { "train.batch" = 32, workload.options.dropout = 0.1 }
[[case]]
name = "second"
set = { "workload.name" = "cnn-small", "train.steps" = 9 }
quick = { "train.steps" = 3, "workload.limit" = 100 }
[sweep]
"train.lr" = [0.1, 0.2]
[quick]
"measure.repeats" = 1
sweep."train.lr" = [0.5]
"""


def refused(text: str, *overrides: str, quick: bool = False) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        parse(text, "x.toml", overrides, quick=quick)
    return caught.value


def line_of(part: str, text: str = TEXT) -> str:
    return f"x.toml:{text[: text.index(part)].count(chr(10)) + 1}"


def test_every_case_is_run_at_every_point_of_the_sweep() -> None:
    found = variations(parse(TEXT, "x.toml").experiment)
    assert [variation.point for variation in found] == [
        {"case": "first", "train.lr": 0.1},
        {"case": "first", "train.lr": 0.2},
        {"case": "second", "train.lr": 0.1},
        {"case": "second", "train.lr": 0.2},
    ]
    first, second = found[1].experiment, found[2].experiment
    assert (first.train.batch, first.train.lr, first.train.epochs) == (32, 0.2, 2)
    assert (first.workload.name, first.workload.options) == ("mlp", {"dropout": 0.1})
    # A case's budget takes the place of the file's other one.
    assert (second.workload.name, second.train.steps, second.train.epochs) == ("cnn-small", 9, None)
    assert second.train.batch == 64


def test_the_quick_form_replaces_values_lists_and_what_cases_set() -> None:
    loaded = parse(TEXT, "x.toml", quick=True)
    quick = loaded.experiment
    assert (loaded.quick, quick.measure.repeats, quick.sweep, quick.quick) == (True, 1, {"train.lr": [0.5]}, {})
    assert [case.quick for case in quick.case] == [{}, {}]
    second = variations(quick)[1].experiment
    assert (second.train.steps, second.workload.limit) == (3, 100)
    full = parse(TEXT, "x.toml")
    assert (full.quick, full.experiment.quick, full.experiment.measure.repeats) == (False, {}, 5)


def test_overrides_are_laid_over_the_quick_form() -> None:
    assert parse(TEXT, "x.toml", ["measure.repeats=4"], quick=True).experiment.measure.repeats == 4


def test_a_quick_budget_takes_the_place_of_a_case_s_other_one() -> None:
    text = TEXT.replace('quick = { "train.steps" = 3', 'quick = { "train.epochs" = 1')
    second = variations(parse(text, "x.toml", quick=True).experiment)[1].experiment
    assert (second.train.steps, second.train.epochs) == (None, 1)


@pytest.mark.parametrize(
    ("old", "new", "code", "part", "words"),
    [
        ('"train.batch" = 32', '"train.bath" = 32', "CFG-KEY", "bath", "did you mean batch?"),
        ('"train.batch" = 32', '"train.batch" = "x"', "CFG-TYPE", '= "x"', "whole number"),
        ('"train.batch" = 32', '"train.batch" = 0', "CFG-RANGE", "= 0,", "at least 1"),
        ('"train.batch" = 32', '"train.lr" = 0.3', "CFG-DUP", '"train.lr" = 0.3', "train.lr"),
        (
            '"train.batch" = 32',
            '"measure.repeats" = 3',
            "CFG-KEY",
            '"measure.repeats" = 3',
            "cannot be set by a case",
        ),
        ('name = "second"', 'name = "first"', "CFG-DUP", 'name = "first"\nset = { "workload', "two cases"),
        ('name = "second"', 'name = " "', "CFG-RANGE", 'name = " "', "empty"),
        ('name = "second"\n', "", "CFG-MISSING", "[[case]]\nset", "case.1.name is missing"),
        ('"measure.repeats" = 1', '"measure.repeat" = 1', "CFG-KEY", '"measure.repeat" = 1', "did you mean repeats?"),
        ('"measure.repeats" = 1', '"measure.repeats" = 0', "CFG-RANGE", "", "measure.repeats"),
        ('"measure.repeats" = 1', '"title" = "x"', "CFG-KEY", '"title"', "cannot be in the quick form"),
        ('"measure.repeats" = 1', '"train.lr" = 1.0', "CFG-DUP", '"train.lr" = 1.0', "would change nothing"),
        ('"measure.repeats" = 1', '"train.batch" = 8', "CFG-DUP", '"train.batch" = 8', 'case "first"'),
        ('sweep."train.lr" = [0.5]', 'sweep."train.lr" = 0.5', "CFG-TYPE", 'sweep."train.lr" = 0.5', "a list"),
        ("[quick]", "[quick]\nworkload = 3", "CFG-TYPE", "workload = 3", "a table"),
        ('"workload.limit" = 100', '"workload.limits" = 100', "CFG-KEY", '"workload.limits"', "limit"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(old: str, new: str, code: str, part: str, words: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    error = refused(text)
    assert error.code == code, error
    assert words in str(error)
    if part:
        assert error.where == line_of(part, text)


def test_an_override_of_what_a_case_sets_would_change_nothing() -> None:
    error = refused(TEXT, "train.batch=16")
    assert error.code == "CFG-SET"
    assert "case.0.set" in str(error)
    changed = parse(TEXT, "x.toml", ["case.0.set.'train.batch'=16"]).experiment
    assert variations(changed)[0].experiment.train.batch == 16


@pytest.mark.parametrize("override", ["quick.train.steps=3", "case.second.quick.train.steps=3", "quick={}"])
def test_an_override_of_the_quick_form_comes_too_late(override: str) -> None:
    assert refused(TEXT, override, quick=True).code == "CFG-SET"


def test_cases_that_set_the_same_are_one() -> None:
    text = TEXT + '[[case]]\nname = "third"\nset = { train.batch = 32, "workload.options.dropout" = 0.1 }\n'
    error = refused(text)
    assert (error.code, error.where) == ("CFG-DUP", line_of('[[case]]\nname = "third"', text))
    assert 'the same as case "first"' in error.what


def test_what_a_strategy_sets_itself_is_no_case_s_to_set() -> None:
    assert "strategy.1.train.batch is set" in refused(TEXT.replace("ways = 2", "ways = 2\ntrain.batch = 8")).what


def test_a_rule_broken_in_a_case_names_it() -> None:
    text = TEXT.replace('"train.batch" = 32', '"strategy.1.name" = "single", "strategy.1.ways" = 1')
    error = refused(text)
    assert (error.code, error.where) == ("CFG-DUP", line_of('[[case]]\nname = "first"', text))
    assert 'case = "first"' in error.what


def test_the_quick_form_may_replace_the_strategies() -> None:
    text = TEXT + '[[quick.strategy]]\nname = "ddp"\nways = 3\n'
    (only,) = parse(text, "x.toml", quick=True).experiment.strategy
    assert (only.name, only.ways) == ("ddp", 3)


def test_without_a_quick_form_there_is_none_to_ask_for() -> None:
    text = TEXT[: TEXT.index("[quick]")].replace('quick = { "train.steps" = 3, "workload.limit" = 100 }', "")
    assert refused(text, quick=True).code == "CFG-QUICK"
