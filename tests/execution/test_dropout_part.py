"""Seats that hold parts of what is dropped take their parts of the mask of the whole."""

from __future__ import annotations

from typing import Any

import attending
import pytest
import torch
from torch import Tensor, nn

from escala.execution.dropout import draw_by_row
from escala.execution.dropout_part import draw_in_parts
from escala.execution.piece import Piece
from escala.terms.errors import EscalaError

SEATS = 2


class Halves(nn.Module):
    """One of `SEATS` equal parts of what its layer is given, dropped; and all of it, dropped by the same layer."""

    def __init__(self, own: int | None) -> None:
        super().__init__()
        self.own = own
        self.dropout = nn.Dropout(0.5)

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        part = rows if self.own is None else rows.chunk(SEATS, -1)[self.own]
        return self.dropout(part), self.dropout(rows)


def masked(own: int | None, rows: Tensor) -> tuple[Tensor, Tensor]:
    piece = Piece()
    model: Any
    model, _ = draw_by_row(Halves(None), 3, piece)
    watch = draw_in_parts(model, own or 0, SEATS if own is not None else 1)
    model.own = own
    watch(model)
    piece.begin(len(rows), len(rows))
    part, whole = model(rows)
    return part, whole


def test_parts_of_a_mask_make_the_mask() -> None:
    rows = torch.ones(4, 3, 6)
    part, whole = masked(None, rows)
    seats = [masked(own, rows) for own in range(SEATS)]
    assert torch.cat([own for own, _ in seats], -1).equal(part)
    assert all(seat.equal(whole) for _, seat in seats)
    assert not part.equal(whole)
    assert 0 < part.count_nonzero() < part.numel()


def test_a_later_batch_of_another_size_is_cut_the_same_way() -> None:
    piece = Piece()
    model: Any
    model, _ = draw_by_row(Halves(None), 3, piece)
    watch = draw_in_parts(model, 1, SEATS)
    model.own = 1
    watch(model)
    for rows in (4, 3):
        piece.begin(rows, rows)
        part, _ = model(torch.ones(rows, 6))
        assert part.shape == (rows, 3)


def test_attention_is_compared_by_its_weights_and_torchs_own_is_never_cut() -> None:
    piece = Piece()
    for factory in (attending.headed, attending.network):
        model, drawn = draw_by_row(factory(0.2), 3, piece)
        assert drawn
        draw_in_parts(model, 0, SEATS)(model)
        piece.begin(5, 5)
        assert model(torch.randn(5, 1, 28, 28)).shape == (5, 10)


def test_what_is_no_equal_part_is_refused() -> None:
    piece = Piece()
    model: Any
    model, _ = draw_by_row(Halves(None), 3, piece)
    watch = draw_in_parts(model, 0, 3)
    model.own = 0
    watch(model)
    piece.begin(4, 4)
    with pytest.raises(EscalaError, match=r"MODEL-RANDOM.*\[4, 3\] where the whole network has \[4, 6\]"):
        model(torch.ones(4, 6))


def test_a_network_that_looks_at_numbers_is_refused_with_the_reason() -> None:
    class Looking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.dropout = nn.Dropout(0.5)

        def forward(self, rows: Tensor) -> Tensor:
            dropped: Tensor = self.dropout(rows) if rows.sum().item() > 0 else rows
            return dropped

    model, _ = draw_by_row(Looking(), 3, Piece())
    draw_in_parts(model, 0, SEATS)(model)
    with pytest.raises(EscalaError, match=r"MODEL-RANDOM.*cannot be followed without numbers"):
        model(torch.ones(4, 6))
