"""Optimiser steps counted on the device, and the learning rate of the next one there: no host code goes by them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


class DeviceSteps:
    """`taken` (int64, 0-d) optimiser steps; `rate` (0-d) is that of the step about to be taken, after `begin`.

    All of it stays in the storages it began with, whose addresses recorded graphs hold; but `plan` makes a new table.
    """

    def __init__(self, device: torch.device) -> None:
        self.taken = torch.zeros((), dtype=torch.int64, device=device)
        # Kernels on accelerators read a rate in float32; those of processors in any format.
        self._rate = torch.zeros(1, dtype=torch.float64 if device.type == "cpu" else torch.float32, device=device)
        self._table: Tensor | None = None

    @property
    def rate(self) -> Tensor:
        """What an optimiser takes as `lr`."""
        return self._rate.view(())

    def plan(self, rates: Sequence[float]) -> None:
        """The rate of every step from 0; later ones keep the last."""
        self._table = torch.tensor(rates, dtype=self._rate.dtype, device=self._rate.device)

    def begin(self) -> None:
        """Set the rate of this step. Raises RuntimeError where there is no plan."""
        if self._table is None:
            raise RuntimeError("a schedule needs to know the number of steps: plan_for(total)")
        place = self.taken.clamp(max=len(self._table) - 1).view(1)
        torch.index_select(self._table, 0, place, out=self._rate)

    def end(self) -> None:
        """Count the step."""
        self.taken.add_(1)

    def resume(self, taken: int) -> None:
        """Go on after so many steps."""
        self.taken.fill_(taken)
