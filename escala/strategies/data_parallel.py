"""DataParallel: one process that scatters each batch over several GPUs and gathers the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from escala.strategies.base import PLAIN, Strategy
from escala.strategies.seating import places, threads_per_seat
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    from torch import nn

    from escala.strategies.learner import Learner
    from escala.workloads.base import Workload


@dataclass(frozen=True)
class DataParallel(Strategy):
    """One seat with several devices; outputs are gathered on the first one, where the loss is taken."""

    def seats(self, host: Host, batch: int, execution: ExecutionSpec = PLAIN) -> tuple[Seat, ...]:
        if self.device != "cuda":
            raise Unfit(f"DataParallel drives several CUDA devices from one process; on {self.device} it has none")
        if self.simulate:
            raise Unfit("DataParallel cannot put two replicas on one device, so it cannot be simulated")
        if self.ways > 1 and execution.batchnorm != "local":
            raise Unfit(
                f"DataParallel makes new replicas for each pass, so batchnorm = {execution.batchnorm} cannot go over "
                "their rows; use ddp"
            )
        if self.ways > 1 and execution.by_row:
            raise Unfit("DataParallel's replicas cannot tell which rows they hold, which random = row asks; use ddp")
        spots = places(host, self.device, self.ways, simulate=False)
        if any(node > 0 for node, _ in spots):
            raise Unfit("DataParallel cannot leave its one process, so not its one node; use ddp")
        devices = tuple(device for _, device in spots)
        return (Seat(0, 0, devices, (0, batch), threads_per_seat(host, 1, self.device)),)

    def build(
        self, workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec
    ) -> Learner:
        from torch import nn

        from escala.strategies.learner import assemble

        def wrap(placed: nn.Module) -> nn.Module:
            return nn.DataParallel(placed, device_ids=[int(name.split(":")[1]) for name in seat.devices])

        return assemble(workload, model, seat, train, execution, wrap=wrap, evaluate_wrapped=True)
