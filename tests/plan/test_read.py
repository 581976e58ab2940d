"""What a person may write in an experiment, and what every slip is answered with."""

from __future__ import annotations

import subprocess
import sys
from typing import get_args

import pytest
from experiment_text import BASE, refused, written

from escala.plan.read import Loaded, label_of, parse
from escala.terms.experiment import Optimizer, Precision


def test_an_experiment_is_read_with_its_text_and_place() -> None:
    loaded = parse(BASE, "x.toml", ["train.batch=128"])
    assert isinstance(loaded, Loaded)
    assert (loaded.text, loaded.where, loaded.overrides) == (BASE, "x.toml", ("train.batch=128",))
    assert loaded.experiment.train.batch == 128
    assert [strategy.ways for strategy in loaded.experiment.strategy] == [1, 2]
    with pytest.raises(AttributeError):
        loaded.text = ""  # type: ignore[misc]


@pytest.mark.parametrize(
    ("place", "line", "where", "key", "near"),
    [
        ("train", "learing_rate = 0.1", 6, "learing_rate", "did you mean lr?"),
        ("train", "learning_rate = 0.1", 6, "learning_rate", "did you mean lr?"),
        ("train", "batch_size = 64", 6, "batch_size", "did you mean batch?"),
        ("train", "epoch = 2", 6, "epoch", "did you mean epochs?"),
        ("train", "optimiser = 'sgd'", 6, "optimiser", "did you mean optimizer?"),
        ("train", "precision = 'bf16'", 6, "precision", "it belongs in [execution]"),
        ("train", "ways = 2", 6, "ways", "it belongs in [[strategy]]"),
        ("measure", "about = 'me'", 15, "about", "about belongs at the top"),
        ("measure", "repeat = 3", 15, "repeat", "did you mean repeats?"),
        ("ddp", "gpus = 3", 12, "gpus", "did you mean ways?"),
        ("ddp", "train.learning_rate = 3", 12, "learning_rate", "did you mean lr?"),
        ("ddp", "[strategy.execution]\nprecison = 'bf16'", 13, "precison", "did you mean precision?"),
        ("measure", "[execution]\ndtype = 'bf16'", 16, "dtype", "did you mean precision?"),
        ("measure", "[trian]\nbatch = 3", 15, "trian", "did you mean train?"),
    ],
)
def test_an_unknown_key_is_named_with_its_line_and_the_nearest_one(
    place: str, line: str, where: int, key: str, near: str
) -> None:
    error = refused(written(place, line))
    assert error.code == "CFG-KEY"
    assert error.where == f"x.toml:{where}"
    assert f"unknown key {key} " in error.what
    assert error.expected.startswith("keys there: ")
    assert near in error.next_step


def test_an_unknown_key_lists_those_there_are() -> None:
    error = refused(written("train", "zzz = 1"))
    assert all(key in error.expected for key in ("batch", "epochs", "lr", "optimizer", "seed"))
    assert error.next_step == ""


@pytest.mark.parametrize(
    ("text", "where", "first"),
    [
        (written("train", "lr = 1\nlr = 2"), "x.toml:7", "first on line 6"),
        (written("train", "lr = 1\nlr = [\n1,\n2]"), "x.toml:7", "first on line 6"),
        (written("measure", "[train]"), "x.toml:15", "first on line 4"),
        (written("measure", "[execution]\n[ 'execution' ]"), "x.toml:16", "first on line 15"),
        (written("train", "[workload.options]\na = { b = 1, b = 2 }"), "x.toml:7", "first on line 7"),
        (written("train", "\"l\\u0072\" = 1\n'lr' = 2"), "x.toml:7", "first on line 6"),
        (written("measure", "[measure.repeats]"), "x.toml:15", "first on line 14"),
        (written("ddp", "ways = 3"), "x.toml:12", "first on line 11"),
    ],
)
def test_a_key_given_twice_is_named_with_both_lines(text: str, where: str, first: str) -> None:
    error = refused(text)
    assert (error.code, error.where, error.expected) == ("CFG-DUP", where, first)


@pytest.mark.parametrize(
    ("lines", "where"),
    [("a.b = 1\n[a]", 2), ("a = [\n]\n[[a]]", 3), ("[[a]]\n[a]", 2), ("[a.b]\n[a]\nb.c = [\n1\n]", 3)],
)
def test_a_table_given_in_two_forms_is_refused_where_the_second_begins(lines: str, where: int) -> None:
    error = refused(lines)
    assert (error.code, error.where) == ("CFG-DUP", f"x.toml:{where}")


@pytest.mark.parametrize(
    ("place", "line", "code", "what", "expected"),
    [
        ("train", 'lr = "fast"', "CFG-TYPE", 'train.lr = "fast"', "a number, above 0"),
        ("train", 'lr = "1e-3"', "CFG-TYPE", 'train.lr = "1e-3"', "a number"),
        ("train", "lr = nan", "CFG-RANGE", "train.lr = nan", "above 0 and finite"),
        ("train", "lr = inf", "CFG-RANGE", "train.lr = inf", "above 0 and finite"),
        ("train", "lr = -inf", "CFG-RANGE", "train.lr = -inf", "above 0 and finite"),
        ("train", "lr = 0", "CFG-RANGE", "train.lr = 0", "above 0"),
        ("train", "momentum = 1.0", "CFG-RANGE", "train.momentum = 1.0", "at least 0 and below 1"),
        ("train", "momentum = nan", "CFG-RANGE", "train.momentum = nan", "at least 0 and below 1"),
        ("train", "batch = 0", "CFG-RANGE", "train.batch = 0", "at least 1"),
        ("train", "batch = nan", "CFG-RANGE", "train.batch = nan", "at least 1"),
        ("train", "batch = true", "CFG-TYPE", "train.batch = true", "a whole number"),
        ("train", "batch = 1.5", "CFG-TYPE", "train.batch = 1.5", "a whole number"),
        ("train", "batch = 9223372036854775808", "CFG-RANGE", "train.batch = 0x8", "at least 1"),
        ("train", f"batch = 0x{'f' * 5000}", "CFG-RANGE", "train.batch = 0xfff", "at least 1"),
        ("train", "seed = 2147483648", "CFG-RANGE", "train.seed = 2147483648", "at least 0 and"),
        ("train", "optimizer = 'sgdd'", "CFG-VALUE", 'train.optimizer = "sgdd"', "one of "),
        (
            "ddp",
            "execution.compile = 'fast'",
            "CFG-VALUE",
            'execution.compile = "fast"',
            "true or false or one of tuned",
        ),
        ("train", "optimizer = 5", "CFG-TYPE", "train.optimizer = 5", "one of "),
        ("train", "optimizer = 2024-01-01", "CFG-TYPE", "train.optimizer = 2024-01-01", "one of "),
        ("ddp", "device = 'gpu'", "CFG-VALUE", 'strategy.1.device = "gpu"', "cuda"),
        ("ddp", "simulate = 1", "CFG-TYPE", "strategy.1.simulate = 1", "true or false"),
        ("ddp", "execution.precision = 'half'", "CFG-VALUE", "strategy.1.execution.precision", "fp32"),
        ("ddp", "train.batch = -1", "CFG-RANGE", "strategy.1.train.batch = -1", "at least 1"),
        ("ddp", "execution.batchnorm = 'ghosts:8'", "CFG-VALUE", 'batchnorm = "ghosts:8"', "local, sync, or ghost:N"),
        ("ddp", "execution.batchnorm = 'ghost:1'", "CFG-VALUE", 'batchnorm = "ghost:1"', "N = 2 or more"),
        ("ddp", "execution.batchnorm = 'ghost:08'", "CFG-VALUE", 'batchnorm = "ghost:08"', "ghost:N"),
        ("ddp", 'execution.batchnorm = "sync\\n"', "CFG-VALUE", "batchnorm = ", "ghost:N"),
        ("ddp", "execution.batchnorm = 8", "CFG-TYPE", "batchnorm = 8", "local, sync, or ghost:N"),
        ("measure", "meters = ['memroy']", "CFG-VALUE", 'measure.meters.0 = "memroy"', "one of memory, nvml"),
        ("measure", "meters = 'memory'", "CFG-TYPE", 'measure.meters = "memory"', "a list, each text"),
        ("measure", "meters = ['nvml', 'nvml']", "CFG-DUP", "meter nvml is named twice", ""),
        ("measure", "meters = ['mymeter:']", "CFG-VALUE", 'measure.meters.0 = "mymeter:"', "module:factory"),
        ("measure", "tdp_w = {gpu = 300}", "CFG-KEY", "measure.tdp_w.gpu is no part", "cuda:N"),
        ("measure", "tdp_w = {cpu = 0}", "CFG-RANGE", "measure.tdp_w.cpu = 0", "above 0"),
        ("measure", "[workload.options]\na = [1, {b = nan}]", "CFG-RANGE", "workload.options.a.1.b", "finite"),
        ("measure", "[workload.options]\na = 07:32:00", "CFG-TYPE", "workload.options.a", "text, a number"),
        ("measure", "[workload.options]\na = -9223372036854775809", "CFG-RANGE", "options.a = -0x8", "64 bits"),
    ],
)
def test_a_value_that_does_not_fit_is_shown_with_what_is_allowed(
    place: str, line: str, code: str, what: str, expected: str
) -> None:
    text = written(place, line)
    error = refused(text)
    assert error.code == code
    assert what in error.what
    assert expected in error.expected
    assert error.where == f"x.toml:{text.splitlines().index(line.splitlines()[-1]) + 1}"


def test_a_small_number_may_be_written_with_an_exponent() -> None:
    assert parse(written("train", "lr = 1e-3"), "x.toml").experiment.train.lr == 0.001


def test_choices_are_listed_with_the_nearest() -> None:
    error = refused(written("train", 'optimizer = "sgdd"'))
    assert all(choice in error.expected for choice in get_args(Optimizer))
    assert error.next_step == "did you mean sgd?"
    error = refused(written("measure", '[execution]\nprecision = "FP23"'))
    assert all(choice in error.expected for choice in get_args(Precision))
    assert error.next_step == "did you mean fp32?"
    assert refused(written("measure", '[execution]\nprecision = "float64"')).next_step == "did you mean fp64?"


@pytest.mark.parametrize(
    ("text", "what", "step"),
    [
        (BASE.replace("[[strategy]]", "[strategy]", 1).split("[[")[0], "strategy = {…}", "[[strategy]]"),
        (BASE.replace("[train]", "[[train]]"), "train = […]", "[train]"),
    ],
)
def test_single_and_double_brackets_are_told_apart(text: str, what: str, step: str) -> None:
    error = refused(text)
    assert error.code == "CFG-TYPE"
    assert what in error.what
    assert step in error.next_step


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        ("", "workload is missing", "x.toml"),
        (BASE.replace('name = "mlp"\n', ""), "workload.name is missing", "x.toml:2"),
        (BASE.replace('name = "ddp"\n', ""), "strategy.1.name is missing", "x.toml:9"),
    ],
)
def test_what_is_missing_is_named_at_its_table(text: str, what: str, where: str) -> None:
    error = refused(text)
    assert (error.code, error.what, error.where) == ("CFG-MISSING", what, where)


def test_an_experiment_without_strategies_is_refused() -> None:
    error = refused('strategy = []\n[workload]\nname = "mlp"\n[train]\nepochs = 1')
    assert (error.code, error.where, error.expected) == ("CFG-RANGE", "x.toml:1", "1 or more")


@pytest.mark.parametrize(
    ("lines", "where"),
    [
        ("lr = ", "x.toml:6:6"),
        ("lr 1", "x.toml:6:4"),
        ("lr = 1 2", "x.toml:6:8"),
        ("lr = =\nbatch = 1\nbatch = 2", "x.toml:6:6"),
        ("lr = 'a\nb'", "x.toml:6:8"),
    ],
)
def test_broken_toml_is_answered_with_line_and_column(lines: str, where: str) -> None:
    error = refused(written("train", lines))
    assert (error.code, error.where) == ("CFG-SYNTAX", where)


def test_a_string_that_never_ends_is_told_with_its_beginning() -> None:
    error = refused(written("train", 'x = """ no end'))
    assert error.code == "CFG-SYNTAX"
    assert error.expected == "in what begins on line 6"


@pytest.mark.parametrize(
    "text",
    ["x = " + "[" * 50_000, "x = " + "{a=" * 50_000, "a." * 50_000 + "a = 1", "[" + "a." * 50_000 + "a]"],
)
def test_nesting_without_end_is_refused_before_it_takes_memory(text: str) -> None:
    error = refused(f"\n{text}")
    assert (error.code, error.where) == ("CFG-SYNTAX", "x.toml:2")
    assert "nested too deeply" in error.what


def test_a_number_of_thousands_of_digits_is_refused() -> None:
    assert refused(f"x = {'9' * 5000}").code == "CFG-SYNTAX"


def test_nothing_in_an_error_line_moves_the_cursor() -> None:
    error = refused(written("train", '"\\u001b[31m\\u202e" = "\\u0007"'))
    assert str(error).isprintable()
    error = refused(written("train", 'lr = "\\u001b[31m\\u009b\\n"'))
    assert str(error).isprintable()


@pytest.mark.parametrize(
    ("text", "where", "what"),
    [
        (BASE.replace("epochs = 1\n", ""), "x.toml:4", "neither"),
        (written("train", "steps = 5"), "x.toml:6", "both"),
        (written("ddp", "train.steps = 5\ntrain.epochs = 1"), "x.toml:12", "both"),
    ],
)
def test_there_is_exactly_one_budget(text: str, where: str, what: str) -> None:
    error = refused(text)
    assert (error.code, error.where) == ("CFG-BUDGET", where)
    assert what in error.what


def test_the_baseline_is_a_label() -> None:
    error = refused(written("measure", 'baseline = "ddp x3"'))
    assert (error.code, error.where) == ("CFG-VALUE", "x.toml:15")
    assert error.expected == "one of single, ddp x2"
    assert error.next_step == "did you mean ddp x2?"
    assert parse(written("measure", 'baseline = "ddp x2"'), "x.toml").experiment.measure.baseline == "ddp x2"


def test_no_two_strategies_share_a_label() -> None:
    error = refused(written("ddp", 'label = "single"'))
    assert (error.code, error.where) == ("CFG-DUP", "x.toml:12")
    assert 'labelled "single"' in error.what
    error = refused(written("ddp", '[[strategy]]\nname = "single"\nexecution.precision = "fp64"'))
    assert (error.code, error.where) == ("CFG-DUP", "x.toml:12")
    assert "label" in error.next_step


@pytest.mark.parametrize(
    "twin", ["", 'label = "other"', "train.batch = 64", "train.epochs = 1", 'execution.precision = "fp32"']
)
def test_two_strategies_that_run_the_same_are_refused(twin: str) -> None:
    error = refused(written("ddp", f'[[strategy]]\nname = "ddp"\nways = 2\n{twin}'))
    assert (error.code, error.where) == ("CFG-DUP", "x.toml:12")
    assert "strategy.2" in error.what
    assert "strategy.1" in error.what


def test_an_empty_label_is_refused() -> None:
    error = refused(written("ddp", 'label = " "'))
    assert (error.code, error.where) == ("CFG-RANGE", "x.toml:12")


def test_reading_needs_no_torch() -> None:
    code = "import sys, escala.plan.read as r; r.read('quickstart'); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_an_option_that_does_not_exist_or_is_not_the_strategys_own_is_refused() -> None:
    wrong = refused(written("ddp", "options = { replica = 2 }"))
    assert (wrong.code, "did you mean replicas" in str(wrong)) == ("CFG-KEY", True)
    idle = refused(written("ddp", "options = { replicas = 2 }"))
    assert idle.code == "CFG-KEY"
    assert "ddp takes no option replicas (options of ddp: none)" in str(idle)
    assert refused(written("ddp", "options = { replicas = 0 }")).code == "CFG-RANGE"
    assert refused(BASE, "strategy.ddp.options.replicas=2").code == "CFG-KEY"
    # At rest it is as if it were not there.
    assert parse(written("ddp", "options = {}"), "x.toml").experiment == parse(BASE, "x.toml").experiment


def test_options_are_part_of_the_label_and_make_another_row() -> None:
    text = written("ddp", '[[strategy]]\nname = "fsdp"\nways = 2')
    two = text + '[[strategy]]\nname = "fsdp"\nways = 2\noptions = { reshard = false, offload = "cpu" }\n'
    found = parse(two, "x.toml").experiment.strategy
    assert [label_of(strategy) for strategy in found[2:]] == ["fsdp x2", "fsdp x2 reshard false offload cpu"]
    assert "did you mean reshard" in str(refused(two.replace("reshard", "rehsard")))
    replicas = refused(two.replace("reshard = false", "replicas = 2"))
    assert "fsdp takes no option replicas (options of fsdp: reshard, offload, narrow, prefetch, group)" in str(
        replicas
    )
