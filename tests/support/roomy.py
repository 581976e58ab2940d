"""A network for which memory runs out where more rows pass at once than it has room for."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Roomy(nn.Module):
    """Has room for `room` rows at once in training, but for the first pass, by which escala gets to know it."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room
        self.passes = 0
        self.layer = nn.Linear(784, 10)

    def forward(self, rows: Tensor) -> Tensor:
        self.passes += 1
        if self.training and self.passes > 1 and len(rows) > self.room:
            raise torch.OutOfMemoryError(f"tried to take {len(rows)} rows")
        outputs: Tensor = self.layer(rows.flatten(1))
        return outputs


def network(room: int = 8) -> nn.Module:
    """The factory that an experiment names."""
    return Roomy(room)
