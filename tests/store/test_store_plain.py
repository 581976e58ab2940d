"""Plain data reads back as it was, in any JSON reader."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.store.changes import changes
from escala.store.plain import not_finite, to_plain

DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


class Figures(msgspec.Struct):
    values: tuple[float, ...] = ()
    maybe: float | None = None
    words: dict[str, Any] = {}


@given(values=st.lists(st.floats()), maybe=st.none() | st.floats())
def test_every_float_comes_back(values: list[float], maybe: float | None) -> None:
    figures = Figures(tuple(values), maybe)
    text = json.dumps(to_plain(figures), allow_nan=False)
    assert repr(msgspec.json.decode(text, type=Figures, strict=False)) == repr(figures)


def test_text_that_is_no_text_is_shown_as_escapes() -> None:
    assert to_plain(Figures(words={"\udcff": ["\udce9"]}))["words"] == {"\\udcff": ["\\udce9"]}


@pytest.mark.parametrize(
    ("plain", "key"),
    [
        ({}, None),
        ({"a": 1.0, "b": [2, "nan", None, True]}, None),
        ({"a": {"b": (1.0, math.nan)}}, "top.a.b[1]"),
        ([[math.inf]], "top[0][0]"),
        (-math.inf, "top"),
    ],
)
def test_the_first_number_that_is_not_finite_is_named(plain: Any, key: str | None) -> None:
    assert not_finite(plain, "top") == key


def test_a_key_without_a_start_has_no_leading_dot() -> None:
    assert not_finite({"a": {"b": math.nan}}, "") == "a.b"


@given(data=DATA)
def test_nothing_differs_from_itself(data: Any) -> None:
    assert list(changes(data, json.loads(json.dumps(data)))) == []


@given(old=DATA, new=DATA)
def test_no_change_means_equal(old: Any, new: Any) -> None:
    if not list(changes(old, new)):
        assert old == new
