"""Nested data with tensors, to JSON and back."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from escala.execution.pack import pack, unpack
from escala.terms.errors import EscalaError

leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text()
    | st.lists(st.floats(width=32, allow_nan=False), max_size=3).map(lambda values: torch.tensor(values))
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=4)
        | st.dictionaries(st.integers(0, 99), inner, max_size=3)
    ),
    max_leaves=12,
)


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return isinstance(other, dict) and list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and one == other


@given(st.dictionaries(st.text(), trees, max_size=4))
def test_what_is_packed_comes_back_through_json(tree: dict[str, Any]) -> None:
    tensors, plain = pack(tree, "learner")
    assert same(unpack(msgspec.json.decode(msgspec.json.encode(plain)), tensors), tree)


def test_two_tensors_never_share_a_name() -> None:
    tree = {"a": {"b/c": torch.zeros(1)}, "a/b": {"c": torch.ones(1)}}
    tensors, plain = pack(tree, "x")
    assert same(unpack(plain, tensors), tree)


def test_numbers_that_are_not_finite_come_back() -> None:
    tensors, plain = pack([math.inf, -math.inf, math.nan], "x")
    up, down, none = unpack(msgspec.json.decode(msgspec.json.encode(plain)), tensors)
    assert (up, down, math.isnan(none)) == (math.inf, -math.inf, True)


def test_what_json_cannot_hold_is_refused_by_its_place() -> None:
    with pytest.raises(EscalaError, match=r"CKPT-STATE.*learner/optimizer/0.*type object"):
        pack({"optimizer": [object()]}, "learner")
    with pytest.raises(EscalaError, match=r"CKPT-STATE.*unknown kind"):
        unpack(["object", "os.system"], {})
