"""DistributedDataParallel: a process per device, gradients averaged by all-reduce during backward."""

from __future__ import annotations

import inspect
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, cast

from escala.execution.exchange import check_exchange, compress, ddp_arguments
from escala.strategies.base import PLAIN, Learner, Strategy
from escala.strategies.seating import data_parallel_seats
from escala.strategies.transport import check_transport
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    from torch import nn

    from escala.workloads.base import Workload


_NEVER = 2**31 - 1


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
        if execution.transport == "shm":
            return self._build_shared(workload, model, seat, train, execution)
        from torch.nn.parallel import DistributedDataParallel

        from escala.strategies.learner import assemble

        # The argument's name in older and newer releases of torch.
        known = inspect.signature(DistributedDataParallel.__init__).parameters
        sync_buffers = "forward_sync_buffers" if "forward_sync_buffers" in known else "broadcast_buffers"
        # Seats start from the same seed; copying rank 0's running statistics would only hide the others'.
        options: dict[str, Any] = {sync_buffers: False} | ddp_arguments(execution)

        def wrap(placed: nn.Module) -> nn.Module:
            on_gpu = not seat.devices[0].startswith("cpu")
            wrapped = DistributedDataParallel(
                placed,
                find_unused_parameters=execution.unused == "detect",
                device_ids=[int(seat.devices[0].split(":")[1])] if on_gpu else None,
                gradient_as_bucket_view=True,
                **options,
            )
            compress(wrapped, execution)
            if execution.capture:
                # DDP times every hundredth step with events, and reads them in the next: no work for a graph.
                wrapped._set_ddp_runtime_logging_sample_rate(_NEVER)
            return wrapped

        def hold(wrapped: nn.Module) -> AbstractContextManager[object]:
            return cast(DistributedDataParallel, wrapped).no_sync()

        # DDP divides the summed gradient by the number of seats; the learner multiplies its share back.
        return assemble(workload, model, seat, train, execution, wrap=wrap, averaged_over=self.ways, hold=hold)

    def _build_shared(
        self, workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec
    ) -> Learner:
        """Without DDP's reducer, which costs more than the sum: one exchange after the last way back of a step."""
        from escala.execution.shared_sum import SharedSum
        from escala.strategies.learner import assemble

        def exchange(placed: nn.Module) -> SharedSum:
            trained = [parameter for parameter in placed.parameters() if parameter.requires_grad]
            return SharedSum(trained, seat.rank, self.ways, detect=execution.unused == "detect")

        return assemble(workload, model, seat, train, execution, exchange=exchange if self.ways > 1 else None)
