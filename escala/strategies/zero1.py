"""ZeRO, first stage: gradients averaged as in ddp, but each seat keeps and steps its part of the optimiser alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from escala.execution.exchange import check_exchange
from escala.strategies.base import PLAIN, Learner, Strategy
from escala.strategies.seating import data_parallel_seats, refuse_capture
from escala.strategies.transport import check_transport
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    import torch
    from torch import nn

    from escala.strategies.sharing import Sharing
    from escala.workloads.base import Workload


@dataclass(frozen=True)
class Zero1(Strategy):
    """Rows divided equally, and the optimiser's state by whole parameters, as evenly as these can be dealt out."""

    grouped: ClassVar[bool] = True

    @property
    def shares(self) -> int:
        return self.ways

    def seats(self, host: Host, batch: int, execution: ExecutionSpec = PLAIN) -> tuple[Seat, ...]:
        seats = data_parallel_seats(host, self.device, self.ways, batch, simulate=self.simulate, unit=execution.unit)
        check_transport(execution, self.device, seats)
        check_exchange(execution, self.device)
        refuse_capture(execution, "zero1")
        if execution.overlap == "optimizer":
            raise Unfit("overlap = optimizer steps on the network part by part, and zero1's seats have a part each")
        if execution.transport == "shm" and self.device != "cpu":
            raise Unfit(
                "transport = shm carries gradients of GPUs for an optimiser that steps on the network part by part, "
                "and zero1's seats have a part each"
            )
        return seats

    def build(
        self, workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec
    ) -> Learner:
        from escala.strategies.averaged import averaged
        from escala.strategies.parted import part_optimizer

        def sharing(core: nn.Module, optimizer: torch.optim.Optimizer) -> Sharing:
            return part_optimizer(core, optimizer, seat.rank, self.ways)

        return averaged(workload, model, seat, train, execution, self.ways, sharing)
