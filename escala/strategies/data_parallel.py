"""DataParallel: one process that scatters each batch over several GPUs and gathers the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from escala.execution.exchange import refuse_exchange
from escala.strategies.base import PLAIN, Learner, Strategy
from escala.strategies.seating import chunks, places, threads_per_seat
from escala.terms.errors import EscalaError, Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    from torch import nn

    from escala.workloads.base import Workload


@dataclass(frozen=True)
class DataParallel(Strategy):
    """One seat with several devices; outputs are gathered on the first one, where the loss is taken."""

    @property
    def shares(self) -> int:
        return 1

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
        if execution.compile:
            raise Unfit("DataParallel makes new replicas for each pass, which torch.compile does not follow; use ddp")
        if execution.capture:
            raise Unfit("DataParallel's threads go to several devices in each pass, which capture cannot record")
        refuse_exchange(execution, "DataParallel adds gradients up within one process")
        if self.ways > 1 and execution.transport is not None:
            raise Unfit(f"DataParallel has one process, which exchanges nothing by transport = {execution.transport}")
        self._check_split(min(batch, execution.at_once or batch))
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
            wrapped = nn.DataParallel(placed, device_ids=[int(name.split(":")[1]) for name in seat.devices])
            wrapped.register_forward_hook(check_outputs)
            return wrapped

        return assemble(workload, model, seat, train, execution, wrap=wrap, evaluate_wrapped=True)

    def _check_split(self, rows: int) -> None:
        """A device that every step leaves idle is none that took part; a short last batch may leave some."""
        if (busy := len(chunks(rows, self.ways))) < self.ways:
            sizes = range(1, rows + self.ways + 1)
            fitting = [size for size in sizes if len(chunks(size, self.ways)) == self.ways]
            nearest = [size for size in fitting if size < rows][-1:] + [size for size in fitting if size > rows][:1]
            raise Unfit(
                f"DataParallel cuts {rows} rows into {busy} pieces, of which {self.ways - busy} of its {self.ways} "
                f"devices would never get one; nearest: {' or '.join(str(size) for size in nearest)} rows"
            )


def check_outputs(_: nn.Module, inputs: tuple[Any, ...], outputs: Any) -> None:
    """A forward hook that raises MODEL-OUTPUTS where replicas gave anything but outputs of each row.

    A loss that every replica took for itself comes back as one number a replica, whose mean is wrong for unequal
    pieces.
    """
    shape = getattr(outputs, "shape", None)
    if shape is not None and (not shape or shape[0] != len(inputs[0])):
        raise EscalaError(
            "MODEL-OUTPUTS",
            "strategy data-parallel",
            f"the network gives outputs of shape {list(shape)} for {len(inputs[0])} rows",
            expected="one output a row; the loss is taken over all rows, once",
            next_step="take the loss in Workload.loss and not in the network, or use ddp",
        )
