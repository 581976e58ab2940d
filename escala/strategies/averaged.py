"""Learners of whole networks whose gradients are added up over all seats: by DDP's reducer, during the step, or in
shared memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, cast

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from escala.execution.exchange import compress, ddp_arguments
from escala.execution.partial_sums import PartialSums
from escala.execution.peer_sums import PeerSums
from escala.execution.shared_sum import SharedSum
from escala.execution.symmetric import symmetric
from escala.strategies.base import Learner
from escala.strategies.learner import assemble
from escala.strategies.sharing import Sharing
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.trial import Seat
from escala.workloads.base import Workload

_NEVER = 2**31 - 1
REGIONS = 3
"""Graphs into which the compiler's is cut where gradients are to leave during the way back: one gives all of them at
its end."""


def averaged(
    workload: Workload,
    model: nn.Module,
    seat: Seat,
    train: TrainSpec,
    execution: ExecutionSpec,
    ways: int,
    sharing: Callable[[nn.Module, torch.optim.Optimizer], Sharing] | None = None,
) -> Learner:
    """The learner of one of `ways` seats, by the transport that `execution` asks for."""
    if execution.overlap == "optimizer" or execution.copies_between(seat.devices[0]):
        return _during_the_step(workload, model, seat, train, execution, ways)
    build = _in_shared_memory if execution.transport == "shm" else _by_reducer
    return build(workload, model, seat, train, execution, ways, sharing)


def _by_reducer(
    workload: Workload,
    model: nn.Module,
    seat: Seat,
    train: TrainSpec,
    execution: ExecutionSpec,
    ways: int,
    sharing: Callable[[nn.Module, torch.optim.Optimizer], Sharing] | None,
) -> Learner:
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
    return assemble(
        workload, model, seat, train, execution, wrap=wrap, averaged_over=ways, hold=hold, sharing=sharing
    )


def _during_the_step(
    workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec, ways: int
) -> Learner:
    """Without DDP's reducer: sums come part by part, and are begun after the last way back of a step or during it."""
    between_gpus = execution.transport == "shm" and ways > 1
    early = between_gpus and execution.overlap == "backward"
    held = list[PeerSums]()

    def exchange(placed: nn.Module) -> PartialSums | PeerSums:
        trained = [weight for weight in placed.parameters() if weight.requires_grad]
        if not between_gpus:
            return PartialSums(trained, seat.rank)
        reach = partial(symmetric, torch.device(seat.devices[0]))
        held.append(PeerSums(trained, seat.rank, ways, reach, early=early))
        return held[0]

    def hold(_: nn.Module) -> AbstractContextManager[object]:
        return held[0].hold() if held else nullcontext()

    regions = REGIONS if early else 1
    return assemble(workload, model, seat, train, execution, exchange=exchange, hold=hold, regions=regions)


def _in_shared_memory(
    workload: Workload,
    model: nn.Module,
    seat: Seat,
    train: TrainSpec,
    execution: ExecutionSpec,
    ways: int,
    sharing: Callable[[nn.Module, torch.optim.Optimizer], Sharing] | None,
) -> Learner:
    """Without DDP's reducer, which costs more than the sum: one exchange after the last way back of a step."""

    def exchange(placed: nn.Module) -> SharedSum:
        trained = [parameter for parameter in placed.parameters() if parameter.requires_grad]
        return SharedSum(trained, seat.rank, ways, detect=execution.unused == "detect")

    summed = exchange if ways > 1 else None
    return assemble(workload, model, seat, train, execution, exchange=summed, sharing=sharing)
