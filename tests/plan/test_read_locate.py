"""The line of a key is right whatever stands around it."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from escala.plan.locate import DEEPEST, Path, scan
from escala.plan.read import parse
from escala.terms.errors import EscalaError


def test_every_way_of_writing_a_key_is_found() -> None:
    text = '''\
title = "a"
about = """
[trap]
x = 1 \\""" y = 2
""" # z = 1
[workload]
name = 'mlp'
options = { a.b = 1, "c d" = [1,
  2, # ]
  { e = "}" }] }
[[strategy]]
name = "x"
[strategy.train]
lr = 1
[[strategy]]
execution . "precision" = "x"
[sweep]
"train.batch" = [1,
  2]
train.lr = [
]
[ "q\\u0041" . 'r' ]
date = 1979-05-27 07:32:00
'''
    tomllib.loads(text)
    lines = scan(text).lines
    expected: dict[Path, int] = {
        ("title",): 1,
        ("about",): 2,
        ("workload",): 6,
        ("workload", "name"): 7,
        ("workload", "options"): 8,
        ("workload", "options", "a", "b"): 8,
        ("workload", "options", "c d", 0): 8,
        ("workload", "options", "c d", 1): 9,
        ("workload", "options", "c d", 2, "e"): 10,
        ("strategy",): 11,
        ("strategy", 0): 11,
        ("strategy", 0, "train", "lr"): 14,
        ("strategy", 1): 15,
        ("strategy", 1, "execution"): 16,
        ("strategy", 1, "execution", "precision"): 16,
        ("sweep", "train.batch"): 18,
        ("sweep", "train", "lr"): 20,
        ("qA",): 22,
        ("qA", "r", "date"): 23,
    }
    assert {path: lines.get(path) for path in expected} == expected
    assert ("trap",) not in lines
    assert ("z",) not in lines


def test_a_key_that_is_not_there_is_looked_up_by_its_table() -> None:
    places = scan("[train]\nlr = 1\n[[strategy]]\n")
    assert places.line(("train", "batch")) == 1
    assert places.line(("strategy", 0, "train", "lr")) == 3
    assert places.line(("measure", "repeats")) is None
    assert places.line(()) is None


def test_a_statement_of_many_lines_is_known_by_its_first() -> None:
    places = scan('a = 1\nb = [\n1,\n2]\nc = """\n"""\n')
    assert [places.statement(line) for line in range(1, 7)] == [1, 2, 2, 2, 5, 5]


def test_scanning_stops_where_the_text_breaks() -> None:
    places = scan("a = 1\nb = 'x\nc = 3\n")
    assert places.lines == {("a",): 1, ("b",): 2}
    assert places.starts == (1, 2)


def test_the_first_key_written_again_is_noted() -> None:
    twice = scan("a = 1\nb = 1\n'b' = 2\na = 3").twice
    assert twice is not None
    assert (twice.path, twice.first, twice.second) == (("b",), 2, 3)
    assert scan("[[a]]\nb = 1\n[[a]]\nb = 2").twice is None


def test_depth_ends_the_scan_before_it_costs_anything() -> None:
    assert scan("\n" + "a." * 200_000 + "a = 1").deep == 2
    assert scan("a = " + "[" * 200_000).deep == 1
    assert scan("a = " + "[" * (DEEPEST - 1) + "]" * (DEEPEST - 1)).deep is None


@settings(deadline=None)
@given(st.text())
def test_no_text_breaks_the_scan(text: str) -> None:
    lines = text.count("\n") + 1
    places = scan(text)
    assert all(1 <= line <= lines for line in places.lines.values())


# Documents are drawn as data and then written in a drawn style; every key has a name of its own, so that
# the line that was reported can be checked by looking at it.

SCALARS = [
    "1",
    "1.5e-3",
    "true",
    "1979-05-27 07:32:00Z",
    "'k = [1]'",
    '"\\" # k = 1"',
    '"""\n[k]\nk = 1 \\"""\n"""""',
    "'''\n'k' = \"\"\"\n'''''",
    '""',
    "''''''",
    "[1, # ]\n  [ ], 'x',\n]",
    '["]", """\n]""" ]',
]
BETWEEN = ["", "# k = 1\n", "\n", "  \t\n", "# [k]\n# '''\n", "\t"]


class Writer:
    """Writes tables in styles drawn by hypothesis, counting its keys."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw
        self.count = 0
        self.paths: list[tuple[Path, str]] = []

    def key(self) -> tuple[str, str]:
        """A new key, plain and as written."""
        self.count += 1
        name = f"k{self.count}"
        style = self.draw(st.sampled_from(["bare", "basic", "literal", "odd"]))
        if style == "odd":
            return f"{name} .=#", json.dumps(f"{name} .=#")
        return name, {"bare": name, "basic": f'"{name}"', "literal": f"'{name}'"}[style]

    def between(self) -> str:
        return self.draw(st.sampled_from(BETWEEN))

    def value(self, path: Path, depth: int) -> str:
        kind = self.draw(st.sampled_from(["scalar", "scalar", "list", "inline"] if depth < 3 else ["scalar"]))
        if kind == "scalar":
            return self.draw(st.sampled_from(SCALARS))
        count = self.draw(st.integers(0, 3))
        if kind == "list":
            gap = self.draw(st.sampled_from(["", " ", "\n", " # ]\n"]))
            items = (self.value((*path, index), depth + 1) for index in range(count))
            return f"[{gap}" + f",{gap}".join(items) + f"{gap}]"
        return "{ " + ", ".join(self.assignment(path, depth + 1) for _ in range(count)) + " }"

    def assignment(self, table: Path, depth: int) -> str:
        names, keys = zip(*(self.key() for _ in range(self.draw(st.integers(1, 3)))), strict=True)
        dot = self.draw(st.sampled_from([".", " . "]))
        self.paths.append(((*table, *names), names[0]))
        return f"{dot.join(keys)} = {self.value((*table, *names), depth)}"

    def body(self, table: Path) -> str:
        count = self.draw(st.integers(0, 3))
        return "".join(f"{self.between()}{self.assignment(table, 0)}\n" for _ in range(count))

    def document(self) -> str:
        text = self.body(())
        for _ in range(self.draw(st.integers(0, 3))):
            name, key = self.key()
            if self.draw(st.booleans()):
                self.paths.append(((name,), name))
                text += f"{self.between()}[ {key} ] # [[k]]\n{self.body((name,))}"
                continue
            inner, inner_key = self.key()
            for index in range(self.draw(st.integers(1, 3))):
                text += f"{self.between()}[[{key}]]\n{self.body((name, index))}"
                self.paths.append(((name, index), name))
                text += f"[{key}.{inner_key}]\n{self.body((name, index, inner))}"
                self.paths.append(((name, index, inner), inner))
        return text


@st.composite
def documents(draw: Any) -> tuple[str, list[tuple[Path, str]]]:
    writer = Writer(draw)
    text = writer.document()
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return text, writer.paths


def has(table: Any, path: Path) -> bool:
    for key in path:
        table = table[key]
    return True


@settings(deadline=None)
@given(documents())
def test_each_key_of_any_document_is_found_on_a_line_that_names_it(
    document: tuple[str, list[tuple[Path, str]]],
) -> None:
    text, paths = document
    table = tomllib.loads(text)
    places = scan(text)
    lines = text.split("\n")
    for path, name in paths:
        assert has(table, path)
        assert path in places.lines
        assert name in lines[places.lines[path] - 1]
    assert places.twice is None


HOMES = [
    "[train]",
    "[[strategy]]\nname = 'b'\n[strategy.train]",
    "[[strategy]]\nname = 'c'",
    "[measure]",
]
AROUND = [
    '[workload.options.a]\nx = """\nlearing_rate = 1\n[train]\n"""',
    "[workload.options.b]\nx = '''\n[[strategy]]\n'''\n\"a.b\" = {learing_rate = 1}",
    "[workload.options.c]\nx = [\n 1, # learing_rate = 2\n [2, 3],\n \"]\",\n]\n'y z'.w = 1979",
    "# learing_rate = 1\n\n\n",
    "[[strategy]]\nname = 'd'\ntrain.lr = 1\n[strategy.execution]",
    "[execution]\nprecision = 'fp64'",
]
PLANTED = [
    "learing_rate = 1",
    '"learing_rate" = """\n\n"""',
    "  'learing_rate'\t= [\n1,\n2\n]",
    "learing_rate.x = { y = 1 }",
    '"lear\\u0069ng_rate" = 0',
]


@settings(deadline=None)
@given(
    st.sampled_from(HOMES),
    st.permutations(AROUND),
    st.integers(0, len(AROUND)),
    st.sampled_from(PLANTED),
    st.booleans(),
)
def test_the_line_of_an_unknown_key_is_right_whatever_surrounds_it(
    home: str, around: list[str], cut: int, planted: str, windows: bool
) -> None:
    before, after = around[:cut], around[cut:]
    head = "\n".join(["[workload]\nname = 'mlp'\n[[strategy]]\nname = 'a'", *before, home])
    text = "\n".join([head, planted, *after])
    if windows:
        text = text.replace("\n", "\r\n")
    with pytest.raises(EscalaError) as caught:
        parse(text, "x.toml")
    assert caught.value.code == "CFG-KEY"
    assert "unknown key learing_rate" in caught.value.what
    assert caught.value.where == f"x.toml:{head.count(chr(10)) + 2}"


def test_a_key_planted_in_an_inline_table_is_found() -> None:
    text = "workload = { name = 'mlp' }\nstrategy = [\n  { name = 'a' },\n  { name = 'b', wys = 2 },\n]\n"
    with pytest.raises(EscalaError) as caught:
        parse(text, "x.toml")
    assert (caught.value.code, caught.value.where) == ("CFG-KEY", "x.toml:4")


def test_a_dotted_key_at_the_top_is_found() -> None:
    with pytest.raises(EscalaError) as caught:
        parse("workload.name = 'mlp'\ntrain.epochs = 1\ntrain.bach = 2\n", "x.toml")
    assert (caught.value.code, caught.value.where) == ("CFG-KEY", "x.toml:3")
