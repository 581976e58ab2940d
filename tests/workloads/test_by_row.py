"""Every workload's dropout can be drawn by row."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from workload_cases import CASES, NAMES, small

from escala.execution.dropout import draw_by_row, nothing_drawn
from escala.execution.piece import Piece

ROWS = 6


@pytest.mark.parametrize("name", NAMES)
def test_rows_keep_their_masks_in_whatever_company(name: str) -> None:
    work = small(name)
    torch.manual_seed(0)
    piece = Piece()
    model, found = draw_by_row(work.model().double(), 0, piece)
    assert found is name.startswith(("mlp", "cnn", "transformer", "bert"))
    model.train()
    for layer in model.modules():
        if isinstance(layer, _BatchNorm):
            layer.eval()  # What rows have in common is none of dropout's business here.
    raw, stored = CASES[name].rows(ROWS)
    inputs, _ = work.example(raw, stored, torch.float64)

    def passed(part: slice, at: int = 0) -> Tensor:
        piece.begin(len(inputs[part]), ROWS, start=part.start, at=at)
        with nothing_drawn(model, torch.device("cpu")):
            outputs: Tensor = model(inputs[part])
        return outputs

    whole = passed(slice(0, ROWS))
    torch.testing.assert_close(torch.cat([passed(slice(0, 2)), passed(slice(2, ROWS))]), whole)
    assert torch.equal(passed(slice(0, ROWS), at=1), whole) is not found


@pytest.mark.parametrize("name", NAMES)
def test_checkpoints_keep_their_names(name: str) -> None:
    work = small(name)
    model: nn.Module = work.model()
    before = list(model.state_dict())
    assert list(draw_by_row(model, 0, Piece())[0].state_dict()) == before
