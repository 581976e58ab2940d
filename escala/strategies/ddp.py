"""DistributedDataParallel: a process per device, gradients averaged by all-reduce during backward."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from escala.execution.exchange import check_exchange
from escala.strategies.base import PLAIN, Learner, Strategy
from escala.strategies.seating import data_parallel_seats
from escala.strategies.transport import check_transport
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    from torch import nn

    from escala.workloads.base import Workload


@dataclass(frozen=True)
class Ddp(Strategy):
    """Rows divided equally; `ways = 1` is one device inside the wrapper, a row of its own in published tables."""

    grouped: ClassVar[bool] = True

    @property
    def shares(self) -> int:
        return self.ways

    def seats(self, host: Host, batch: int, execution: ExecutionSpec = PLAIN) -> tuple[Seat, ...]:
        seats = data_parallel_seats(host, self.device, self.ways, batch, simulate=self.simulate, unit=execution.unit)
        check_transport(execution, self.device, seats)
        check_exchange(execution, self.device)
        return seats

    def build(
        self, workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec
    ) -> Learner:
        from escala.strategies.averaged import averaged

        return averaged(workload, model, seat, train, execution, self.ways)
