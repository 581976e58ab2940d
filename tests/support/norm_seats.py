"""One seat's way through the cases of the test of synchronised batch normalisation.

`python norm_seats.py RANK SEATS FOLDER`: one start serves all cases, since importing torch takes longer than any of
them. Each seat leaves `RANK.pt` with what it computed, by name.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor, nn

from escala.execution.batchnorm import arrange

CHANNELS = 3


@dataclass(frozen=True)
class Case:
    """Rows of every seat in each step in turn, and the layer that they pass."""

    name: str
    rows: tuple[tuple[int, ...], ...]
    places: tuple[int, ...] = ()
    momentum: float | None = 0.1
    affine: bool = True
    away: float = 1.0
    dtype: torch.dtype = torch.float64

    def steps(self) -> list[tuple[Tensor, Tensor]]:
        """Rows of the global batch and the gradient that comes back to them, for each step."""
        drawn = torch.Generator().manual_seed(len(self.name))

        def normal(rows: int) -> Tensor:
            return torch.randn(rows, CHANNELS, *self.places, generator=drawn, dtype=torch.float64)

        return [
            ((normal(sum(rows)) * 2 + self.away).to(self.dtype), normal(sum(rows)).to(self.dtype))
            for rows in self.rows
        ]

    def model(self) -> nn.Module:
        """One layer, with weights that are not all alike."""
        kind = nn.BatchNorm2d if self.places else nn.BatchNorm1d
        layer = kind(CHANNELS, momentum=self.momentum, affine=self.affine)
        if self.affine:
            with torch.no_grad():
                layer.weight.copy_(torch.tensor([0.5, 1.0, -2.0]))
                layer.bias.copy_(torch.tensor([0.1, 0.0, 3.0]))
        return nn.Sequential(layer).to(torch.float64 if self.dtype is torch.float64 else torch.float32)


CASES = {
    2: (
        Case("even", ((4, 4), (4, 4), (4, 4))),
        Case("uneven", ((5, 3), (2, 7), (1, 1))),
        Case("an empty seat", ((4, 4), (0, 3), (2, 0)), places=(2, 3)),
        Case("images", ((5, 3), (1, 0)), places=(4, 2)),
        Case("no momentum", ((5, 3), (2, 4), (3, 3)), momentum=None),
        Case("not affine", ((5, 3), (2, 4)), affine=False),
        Case("far from nothing", ((5, 30), (20, 4)), away=1e4),
        Case("half as wide", ((64, 40), (17, 80)), places=(3, 3), dtype=torch.bfloat16),
    ),
    3: (
        Case("three uneven", ((5, 3, 1), (2, 7, 4)), places=(2, 2)),
        Case("three, two of them empty", ((4, 4, 4), (0, 0, 3), (0, 5, 0))),
    ),
}


def parts(rows: tuple[int, ...]) -> list[slice]:
    """The rows of each seat."""
    return [slice(sum(rows[:seat]), sum(rows[: seat + 1])) for seat in range(len(rows))]


def follow(case: Case, rank: int) -> dict[str, Tensor]:
    model, piece = arrange(case.model(), "sync", 1, rank)
    assert piece is not None
    left = dict[str, Tensor]()
    for step, (inputs, back) in enumerate(case.steps()):
        own = parts(case.rows[step])[rank]
        count = own.stop - own.start
        # A seat without rows passes one that must not count, as the feed gives it.
        mine = (inputs[own] if count else inputs[:1] * 1000).detach().requires_grad_()
        piece.begin(count, len(inputs))
        outputs = model(mine)
        outputs.backward(back[own] if count else torch.zeros_like(outputs))
        assert mine.grad is not None
        left[f"outputs {step}"] = outputs.detach()[:count]
        left[f"of inputs {step}"] = mine.grad[:count]
        assert count or not mine.grad.any()
    left |= {f"of {name}": value.grad for name, value in model.named_parameters() if value.grad is not None}
    left |= model.state_dict()
    model.eval()
    left["judged"] = model(case.steps()[0][0]).detach()
    return left


def main() -> None:
    rank, seats, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    torch.set_num_threads(1)
    store = dist.FileStore(str(folder / "store"), seats)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=seats, timeout=timedelta(seconds=60))
    torch.save({case.name: follow(case, rank) for case in CASES[seats]}, folder / f"{rank}.pt")
    try:
        piece_of_one_row(rank)
    except ValueError as error:
        (folder / f"{rank}.txt").write_text(str(error))
    dist.destroy_process_group()


def piece_of_one_row(rank: int) -> None:
    model, piece = arrange(Case("", ()).model(), "sync", 1, rank)
    assert piece is not None
    piece.begin(int(rank == 0), 1)
    model(torch.ones(1, CHANNELS, dtype=torch.float64))


if __name__ == "__main__":
    main()
