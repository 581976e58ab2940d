"""Changes in place of what a sharded part gives are found before they cost a gradient."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from escala.strategies.inplace import out_of_place, watch_first_pass
from escala.terms.errors import EscalaError


class Adding(nn.Module):
    def __init__(self, *, in_place: bool) -> None:
        super().__init__()
        self.part = nn.Linear(4, 4)
        self.in_place = in_place

    def forward(self, rows: Tensor) -> Tensor:
        # A linear layer gives a view where rows have more than one dimension before the last.
        outputs: Tensor = self.part(rows)
        if self.in_place:
            outputs += rows
            return outputs * 1
        return outputs + rows


def watched(*, in_place: bool) -> Adding:
    model = Adding(in_place=in_place)
    watch_first_pass(model, {"part": model.part})
    return model


def test_a_change_in_place_is_refused_by_the_parts_name() -> None:
    with pytest.raises(EscalaError, match=r"MODEL-INPLACE\] layer part: .*x = x \+ y") as caught:
        watched(in_place=True)(torch.zeros(2, 3, 4))
    assert caught.value.exit == 3


def test_it_is_looked_for_once_and_where_gradients_are_wanted() -> None:
    model = watched(in_place=True)
    with torch.no_grad():
        model(torch.zeros(2, 3, 4))
    assert model.part._forward_hooks
    fine = watched(in_place=False)
    fine(torch.zeros(2, 3, 4))
    assert not fine.part._forward_hooks
    assert not fine._forward_hooks


def test_an_output_that_is_no_view_may_be_changed() -> None:
    watched(in_place=True)(torch.zeros(3, 4))


def test_layers_of_pytorch_leave_their_inputs_alone() -> None:
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Dropout(0.5, inplace=True), nn.Linear(2, 2))
    out_of_place(model)
    assert not model[0].inplace
    assert not model[1].inplace
