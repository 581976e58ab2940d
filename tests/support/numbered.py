"""A workload whose rows are their own numbers, for tests of the loop and the feed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from escala.data.base import Split
from escala.execution.feed import Rows, rows_of
from escala.workloads.base import Workload


@dataclass(frozen=True)
class Numbers(Workload):
    """Inputs and targets are the row's number; an output is right where it is the target."""

    evaluation_rows: int = 500  # type: ignore[misc]
    data: ClassVar[tuple[str, ...]] = ()

    def model(self) -> nn.Module:
        return nn.Identity()

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        return (model,)

    def inputs(self, raw: Tensor, dtype: torch.dtype) -> Tensor:
        return raw

    def score(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs == targets).sum()


def numbered(rows: int, chunk: int = 500) -> Rows:
    """So many rows in host memory, judged `chunk` at a time."""
    numbers = np.arange(rows, dtype=np.int64)
    return rows_of(Split(numbers, numbers), torch.device("cpu"), Numbers(chunk), torch.float32)
