"""What each part of a network costs: seconds on the device, or floating-point operations."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from escala.execution.precision import autocast, parameter_type
from escala.execution.synchronise import synchroniser
from escala.strategies.arrival import Arrivals
from escala.strategies.balance import balanced, check_stages
from escala.strategies.parts import Carried, Part, alone, check_whole, parts_of, tensors_of
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, Precision
from escala.workloads.base import Workload

_TIMES = 5


def split_of(
    workload: Workload,
    model: nn.Module,
    execution: ExecutionSpec,
    inputs: Tensor,
    stages: int,
    given: tuple[int, ...] | None,
    *,
    simulate: bool,
) -> tuple[int, ...]:
    """How many parts of the network each of `stages` stages holds: as `given`, or balanced for rows like `inputs`.

    By seconds, which one seat measures; by operations where seats share a device, so that seconds would be noise.
    All seats call it. Raises `Unfit` where the network cannot be cut so.
    """
    parts = parts_of(workload, model)
    floats = inputs.is_floating_point()
    check_whole(model, parts, inputs[:2].to("cpu", torch.float32 if floats else inputs.dtype))
    check_stages(stages, len(parts))
    if given is not None:
        if sum(given) != len(parts):
            raise Unfit(f"split names {sum(given)} blocks; the network has {len(parts)}")
        return given
    weigh = flops_of if simulate else seconds_of
    # Layers that work in place must not change the rows themselves.
    costs = told_by_first(lambda: weigh(parts, inputs.clone(), execution.precision), len(parts))
    return balanced(costs, stages)


def seconds_of(parts: Sequence[Part], inputs: Tensor, precision: Precision) -> list[float]:
    """The shortest of some ways forward and back of each part on the device of `inputs`, seconds.

    One part after the other is copied there, so a network that does not fit as a whole can be measured.
    """
    wait = synchroniser([inputs.device])

    def seconds(go: Callable[[], Carried]) -> float:
        found = list[float]()
        # The first one also loads kernels.
        for _ in range(1 + _TIMES):
            wait()
            began = time.perf_counter()
            go()
            wait()
            found.append(time.perf_counter() - began)
        return min(found[1:])

    return _along(parts, inputs, precision, seconds)


def flops_of(parts: Sequence[Part], inputs: Tensor, precision: Precision) -> list[float]:
    """Floating-point operations of a way forward and back of each part for these rows; of elementwise parts 0."""

    def flops(go: Callable[[], Carried]) -> float:
        with FlopCounterMode(display=False) as counter:
            go()
        return float(counter.get_total_flops())

    return _along(parts, inputs, precision, flops)


def told_by_first(numbers: Callable[[], Sequence[float]], many: int) -> list[float]:
    """What `numbers` gives on rank 0, `many` of them, on all seats; the others do not call it."""
    if not dist.is_initialized() or dist.get_world_size() == 1:
        return list(numbers())
    line = torch.zeros(many, dtype=torch.float64)
    if dist.get_rank() == 0:
        line += torch.tensor(numbers(), dtype=torch.float64)
    dist.all_reduce(line)
    return [float(number) for number in line.tolist()]


def _along(
    parts: Sequence[Part], inputs: Tensor, precision: Precision, weigh: Callable[[Callable[[], Carried]], float]
) -> list[float]:
    carried: Carried = inputs
    found = list[float]()
    for part in parts:
        module = alone(part).to(inputs.device, parameter_type(precision)).train()
        given = carried

        def go(module: nn.Module = module, given: Carried = given) -> Carried:
            return _there_and_back(module, given, precision)

        found.append(weigh(go))
        carried = go()
    return found


def _there_and_back(module: nn.Module, given: Carried, precision: Precision) -> Carried:
    """The outputs of a part, cut off from what made them, after a way back through it."""
    arrivals = Arrivals()
    begun = tuple(arrivals.begin(one.detach(), learns=one.is_floating_point()) for one in tensors_of(given))
    with autocast(precision, begun[0].device):
        outputs = module(begun if isinstance(given, tuple) else begun[0])
    made = tensors_of(outputs)
    learned = [one for one in made if one.requires_grad]
    if learned:
        torch.autograd.backward(learned, [torch.ones_like(one) for one in learned])
    cut_off = tuple(one.detach() for one in made)
    return cut_off if isinstance(outputs, tuple) else cut_off[0]
