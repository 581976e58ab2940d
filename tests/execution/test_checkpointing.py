"""Blocks that pass again on the way back: nothing else changes, and less is kept."""

from __future__ import annotations

from typing import Any

import normed
import pytest
import torch
from torch import Tensor, nn

from escala.execution.batchnorm import arrange
from escala.execution.checkpointing import checkpointed
from escala.execution.dropout import draw_by_row
from escala.execution.piece import Piece
from escala.terms.errors import Unfit


class Counted(nn.Module):
    """A block that knows how often it passed, and whose dropout is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(6, 40), nn.Linear(40, 6)
        self.dropout = nn.Dropout(0.3)
        self.passes = 0

    def forward(self, rows: Tensor) -> Tensor:
        self.passes += 1
        narrow: Tensor = self.dropout(self.narrow(self.dropout(self.wide(rows).relu())))
        return narrow


def network() -> nn.Sequential:
    torch.manual_seed(2)
    return nn.Sequential(Counted(), Counted(), nn.BatchNorm1d(6), Counted())


def three_steps(model: nn.Module, piece: Piece | None = None) -> list[Tensor]:
    """Gradients of each step, and what is drawn after it, and running statistics in the end."""
    found = list[Tensor]()
    torch.manual_seed(4)
    for step in range(3):
        rows = torch.randn(8, 6, generator=torch.Generator().manual_seed(step))
        if piece is not None:
            piece.begin(len(rows), len(rows), at=step)
        model.zero_grad()
        model(rows).square().sum().backward()
        found += [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
        found.append(torch.rand(3))
    return found + [value.clone() for value in model.buffers()]


def same(ones: list[Tensor], others: list[Tensor]) -> bool:
    return all(one.equal(other) for one, other in zip(ones, others, strict=True))


@pytest.mark.parametrize("by_row", [False, True])
def test_gradients_numbers_drawn_and_statistics_are_those_without(by_row: bool) -> None:
    found = dict[bool, list[Tensor]]()
    for wanted in (False, True):
        model: Any = network()
        piece = Piece() if by_row else None
        if piece is not None:
            model, _ = draw_by_row(model, 5, piece)
        found[wanted] = three_steps(checkpointed(model, tuple(model), wanted, piece), piece)
        assert [block.passes for block in (model[0], model[1], model[3])] == ([6, 6, 3] if wanted else [3, 3, 3])
        assert set(model.state_dict()) == set(network().state_dict())
    assert same(found[False], found[True])


@pytest.mark.parametrize("choice", ["local", "ghost:4"])
def test_statistics_are_noted_once(choice: str) -> None:
    found = dict[bool, list[Tensor]]()
    for wanted in (False, True):
        torch.manual_seed(2)
        model, piece = arrange(normed.rows(), choice, 4, 0)
        model = checkpointed(model, tuple(model.children()), wanted, piece)
        for step in range(2):
            if piece is not None:
                piece.begin(12, 12, at=step)
            torch.manual_seed(step)
            model(torch.randn(12, 784)).sum().backward()
        parts = [layer.part() for layer in model.modules() if hasattr(layer, "part")]
        found[wanted] = [*(value.clone() for value in model.buffers()), *parts]
        assert len(found[wanted]) == (6 if choice == "local" else 8)
    assert same(found[False], found[True])


def test_less_is_kept_for_the_way_back() -> None:
    def kept(wanted: bool) -> int:
        model = checkpointed(network(), tuple(network()), False, None)
        model = checkpointed(model, tuple(model.children()), wanted, None)
        held = set[tuple[int, int]]()

        def note(value: Tensor) -> Tensor:
            held.add((value.data_ptr(), value.nbytes))
            return value

        with torch.autograd.graph.saved_tensors_hooks(note, lambda value: value):
            model(torch.randn(64, 6))
        return sum(size for _, size in held)

    assert kept(True) < 0.6 * kept(False)


def test_judging_passes_once() -> None:
    model: Any = network()
    checkpointed(model, tuple(model), True, None)
    model.eval()
    model(torch.randn(4, 6)).sum().backward()
    model.train()
    with torch.no_grad():
        model(torch.randn(4, 6))
    assert [block.passes for block in (model[0], model[3])] == [2, 2]


def test_a_network_of_one_block_is_unfit_with_what_to_add() -> None:
    with pytest.raises(Unfit, match=r"this network has 1; give its Workload a method blocks\(model\)"):
        checkpointed(network(), (nn.Linear(1, 1),), True, None)
