"""Whatever stands in an experiment, it is read or refused, and faults are found where the schema finds them."""

from __future__ import annotations

import msgspec
import pytest
from experiment_text import BASE
from hypothesis import given, settings
from hypothesis import strategies as st

from escala.plan.explain import below, faults, schema
from escala.plan.read import parse
from escala.terms.errors import EscalaError
from escala.terms.experiment import Experiment

VALUES = st.one_of(
    st.integers(-3, 3),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.sampled_from(["sgd", "fp32", "cpu", "memory", "x", ""]),
    st.lists(st.sampled_from(["memory", "x", 1]), max_size=2),
    st.dictionaries(st.sampled_from(["batch", "name", "x"]), st.integers(0, 2), max_size=2),
)
KEYS = [
    ("workload", key) for key in ("name", "data", "options", "validation", "limit")
] + [
    ("train", key) for key in ("batch", "epochs", "optimizer", "lr", "momentum", "weight_decay", "seed", "x")
] + [
    ("measure", key) for key in ("repeats", "baseline", "cooldown_s", "block_s", "meters", "order_seed")
] + [("execution", "precision"), ("sweep", "a"), ("title",), ("about",), ("strategy",)]  # fmt: skip


@settings(deadline=None)
@given(st.sampled_from(KEYS), VALUES)
def test_a_fault_is_found_exactly_where_the_schema_refuses(path: tuple[str, ...], value: object) -> None:
    tree: dict[str, object] = {
        "workload": {"name": "mlp"},
        "train": {"epochs": 1},
        "strategy": [{"name": "single"}],
        "measure": {},
        "execution": {},
        "sweep": {},
    }
    table = tree
    for key in path[:-1]:
        table = table[key]  # type: ignore[assignment]
    table[path[-1]] = value
    try:
        msgspec.convert(tree, Experiment)
        fits = True
    except msgspec.ValidationError:
        fits = False
    found = list(faults(tree, schema()))
    assert (not found) == fits
    assert all(fault.path[: len(path)] == path for fault in found)


def test_every_table_of_the_schema_can_be_walked() -> None:
    assert below(schema(), "train") is not None
    assert below(schema(), "nothing") is None


FRAGMENTS = ["[", "[[", "]", "]]", '"', "'", '"""', "'''", "=", "\n", "\r\n", ".", ",", "{", "}", "#", "\\"]
FRAGMENTS += ["train", "strategy", "sweep", "1", "nan", "true", "lr", '"train.batch"', " ", "0x", "1e9", "\t"]
FRAGMENTS += ["2024-01-01", "!!python/object ", "\x00", "é", "\u2028", "\ufeff"]


@settings(deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join), st.integers(0, len(BASE)), st.integers(0, 20))
def test_any_change_of_an_experiment_loads_or_is_refused(insert: str, start: int, cut: int) -> None:
    text = BASE[:start] + insert + BASE[start + cut :]
    try:
        assert isinstance(parse(text, "x.toml").experiment, Experiment)
    except EscalaError as error:
        refusal = error
    else:
        return
    assert refusal.code.startswith("CFG-")
    assert str(refusal).isprintable()


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(st.sampled_from(FRAGMENTS), max_size=40).map("".join)))
def test_any_text_loads_or_is_refused(text: str) -> None:
    with pytest.raises(EscalaError):
        parse(text, "x.toml")
