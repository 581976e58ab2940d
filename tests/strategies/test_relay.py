"""What stages tell each other of the tensors that will come. That they come is for the same-arithmetic test."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from escala.strategies.relay import Form, Kind, carried_of, kind_of, told, understood
from escala.terms.errors import Unfit

TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool]
KINDS = st.builds(
    Kind,
    st.lists(st.integers(0, 2**40), max_size=6).map(tuple),
    st.sampled_from(TYPES),
    st.booleans(),
    st.booleans(),
)


@given(st.booleans(), st.lists(KINDS, min_size=1, max_size=8).map(tuple))
def test_a_form_is_understood_as_it_was_told(bare: bool, kinds: tuple[Kind, ...]) -> None:
    form = Form(bare, kinds)
    assert understood(told(form)) == form


def test_more_tensors_than_a_line_holds_are_refused() -> None:
    with pytest.raises(Unfit, match="40 tensors, more than can be told of"):
        told(Form(False, (Kind((1,), torch.float32, False, False),) * 40))


def test_a_kind_is_what_the_other_side_must_make_room_for() -> None:
    images = torch.zeros(2, 3, 4, 5)
    assert kind_of(images) == Kind((2, 3, 4, 5), torch.float32, False, False)
    assert kind_of(images.to(memory_format=torch.channels_last)).last
    # The same bytes in both layouts.
    assert not kind_of(torch.zeros(2, 1, 4, 5).to(memory_format=torch.channels_last)).last
    assert kind_of(images.double().requires_grad_()) == Kind((2, 3, 4, 5), torch.float64, True, False)
    with pytest.raises(Unfit, match="complex64, which cannot be sent"):
        kind_of(images.to(torch.complex64))


def test_what_was_sent_comes_as_it_was_given() -> None:
    one, kind = torch.zeros(1), Kind((1,), torch.float32, False, False)
    assert carried_of(Form(True, (kind,)), [one]) is one
    assert carried_of(Form(False, (kind,)), [one]) == (one,)
    assert Form(False, (kind, kind._replace(learns=True))).learning == (kind._replace(learns=True),)
