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

_TIMES = 3
_PASSES = 4
"""Between two waits for the device, as a step has several, so that launching the first and waiting weigh little."""

Finish = Callable[[Tensor], Tensor]
"""What the loss makes of the last part's outputs."""


def split_of(
    workload: Workload,
    model: nn.Module,
    execution: ExecutionSpec,
    sample: tuple[Tensor, Tensor],
    stages: int,
    given: tuple[int, ...] | None,
    *,
    simulate: bool,
) -> tuple[int, ...]:
    """How many parts of the network each of `stages` stages holds: as `given`, or balanced for rows like `sample`.

    By seconds, which one seat measures; by operations where seats share a device, so that seconds would be noise.
    All seats call it. Raises `Unfit` where the network cannot be cut so.
    """
    parts, (inputs, targets) = parts_of(workload, model), sample
    floats = inputs.is_floating_point()
    check_whole(model, parts, inputs[:2].to("cpu", torch.float32 if floats else inputs.dtype))
    check_stages(stages, len(parts))
    if given is not None:
        if sum(given) != len(parts):
            raise Unfit(f"split names {sum(given)} blocks; the network has {len(parts)}")
        return given
    weigh = flops_of if simulate else seconds_of

    def finish(outputs: Tensor) -> Tensor:
        return workload.loss(outputs, targets)

    # Layers that work in place must not change the rows themselves.
    costs = told_by_first(lambda: weigh(parts, inputs.clone(), execution.precision, finish), len(parts))
    return balanced(costs, stages)


def seconds_of(parts: Sequence[Part], inputs: Tensor, precision: Precision, finish: Finish) -> list[float]:
    """A way forward and back of each part on the device of `inputs`, seconds: the shortest mean of a few.

    The last part's goes through the loss, which its stage has as well: of a language model that is no trifle. One
    part after the other is copied there, so a network that does not fit as a whole can be measured.
    """
    wait = synchroniser([inputs.device])

    def seconds(go: Callable[[], Carried]) -> float:
        found = list[float]()
        # The first one also loads kernels.
        for _ in range(1 + _TIMES):
            wait()
            began = time.perf_counter()
            for _ in range(_PASSES):
                go()
            wait()
            found.append((time.perf_counter() - began) / _PASSES)
        return min(found[1:])

    return _along(parts, inputs, precision, seconds, finish)


def flops_of(parts: Sequence[Part], inputs: Tensor, precision: Precision, finish: Finish) -> list[float]:
    """Floating-point operations of a way forward and back of each part for these rows; of elementwise parts 0.

    Those of the loss count as the last part's.
    """

    def flops(go: Callable[[], Carried]) -> float:
        with FlopCounterMode(display=False) as counter:
            go()
        return float(counter.get_total_flops())

    return _along(parts, inputs, precision, flops, finish)


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
    parts: Sequence[Part],
    inputs: Tensor,
    precision: Precision,
    weigh: Callable[[Callable[[], Carried]], float],
    finish: Finish,
) -> list[float]:
    carried: Carried = inputs
    found = list[float]()
    for number, part in enumerate(parts, 1):
        module = alone(part, inputs.device).to(parameter_type(precision)).train()
        given, end = carried, finish if number == len(parts) else None

        def go(module: nn.Module = module, given: Carried = given, end: Finish | None = end) -> Carried:
            return _there_and_back(module, given, precision, end)

        found.append(weigh(go))
        carried = go()
    return found


def _there_and_back(module: nn.Module, given: Carried, precision: Precision, end: Finish | None) -> Carried:
    """A part's outputs, or what `end` makes of them, cut off from what made them, after a way back through it."""
    arrivals = Arrivals()
    begun = tuple(arrivals.begin(one.detach(), learns=one.is_floating_point()) for one in tensors_of(given))
    with autocast(precision, begun[0].device):
        outputs = module(begun if isinstance(given, tuple) else begun[0])
        outputs = end(outputs) if end else outputs
    made = tensors_of(outputs)
    learned = [one for one in made if one.requires_grad]
    if learned:
        torch.autograd.backward(learned, [torch.ones_like(one) for one in learned])
    cut_off = tuple(one.detach() for one in made)
    return cut_off if isinstance(outputs, tuple) else cut_off[0]
