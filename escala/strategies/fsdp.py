"""Fully sharded data parallel: each seat keeps a part of all weights, gradients and optimiser state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from escala.strategies.base import PLAIN, Learner, Strategy
from escala.strategies.shardable import SHARDED, sharded_seats
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    from torch import nn

    from escala.workloads.base import Workload


@dataclass(frozen=True)
class Fsdp(Strategy):
    """Rows divided equally, and the network over all seats."""

    grouped: ClassVar[bool] = True
    takes: ClassVar[tuple[str, ...]] = SHARDED

    @property
    def shares(self) -> int:
        return self.ways

    def seats(self, host: Host, batch: int, execution: ExecutionSpec = PLAIN) -> tuple[Seat, ...]:
        return sharded_seats(self, host, batch, execution)

    def build(
        self, workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec
    ) -> Learner:
        from escala.strategies.sharded import sharded

        return sharded(workload, model, seat, train, execution, self.options, (self.ways,))
