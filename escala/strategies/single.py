"""One process, one device: the baseline of every comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from escala.execution.exchange import refuse_exchange
from escala.strategies.base import PLAIN, Learner, Strategy
from escala.strategies.seating import data_parallel_seats
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    from torch import nn

    from escala.workloads.base import Workload


@dataclass(frozen=True)
class Single(Strategy):
    """The whole batch on one device, all usable cores for its one process."""

    @property
    def shares(self) -> int:
        return 1

    def seats(self, host: Host, batch: int, execution: ExecutionSpec = PLAIN) -> tuple[Seat, ...]:
        if self.ways != 1:
            raise Unfit(f"single has one seat, not {self.ways}; use ddp or data-parallel for more")
        refuse_exchange(execution, "single exchanges nothing")
        return data_parallel_seats(host, self.device, 1, batch, simulate=False, unit=execution.unit)

    def build(
        self, workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec
    ) -> Learner:
        from escala.strategies.learner import assemble

        return assemble(workload, model, seat, train, execution)
