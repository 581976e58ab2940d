"""Learners whose weights, gradients and optimiser state are sharded over seats, on PyTorch's `fully_shard`.

Third stage of ZeRO (Rajbhandari et al., arXiv:1910.02054), each parameter being cut along its first dimension; as in
Zhao et al., arXiv:2304.11277, units are gathered for their pass and freed after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule, MixedPrecisionPolicy, fully_shard

from escala.strategies.base import Learner
from escala.strategies.dtensors import local, part_state, step_on_parts, whole_state
from escala.strategies.inplace import out_of_place, watch_first_pass
from escala.strategies.learner import assemble
from escala.strategies.seating import divide, pieces
from escala.strategies.sharing import Sharing
from escala.strategies.units import units
from escala.terms.experiment import ExecutionSpec, StrategyOptions, TrainSpec
from escala.terms.trial import Seat
from escala.workloads.base import Workload


def sharded(
    workload: Workload,
    model: nn.Module,
    seat: Seat,
    train: TrainSpec,
    execution: ExecutionSpec,
    options: StrategyOptions,
    mesh_shape: tuple[int, ...],
) -> Learner:
    """The learner of one seat of a mesh: (shards,), or (replicas, shards).

    `fully_shard` divides the summed gradient by the number of seats; the learner multiplies its share back. Weights
    leave host memory a unit at a time, so that no device ever holds all of them.
    """
    kind = seat.devices[0].split(":")[0]
    names = ("replicas", "shards")[-len(mesh_shape) :]
    mesh = init_device_mesh(kind, mesh_shape, mesh_dim_names=names)

    def wrap(placed: nn.Module) -> nn.Module:
        shard_over(workload, _core(placed), mesh, options, compiled=bool(execution.compile))
        return placed

    def sharing(core: nn.Module, optimizer: torch.optim.Optimizer) -> Sharing:
        step_on_parts(optimizer)
        return Sharing(
            whole=lambda snapshot: whole_state(snapshot, core, keep=dist.get_rank() == 0),
            part=lambda state: part_state(state, core),
            clip=clip_over(mesh.get_group("shards")),
            together=True,
        )

    return assemble(
        workload,
        model,
        seat,
        train,
        execution,
        place=lambda whole, _: whole,
        wrap=wrap,
        averaged_over=mesh.size(),
        hold=held,
        sharing=sharing,
        passes=passes_of(train.batch, mesh.size(), execution),
    )


def passes_of(batch: int, seats: int, execution: ExecutionSpec) -> int:
    """How many passes the seat with most rows makes of a full batch: weights are gathered in each, by all seats."""
    if execution.at_once is None:
        return 1
    shares = divide(batch, seats, execution.unit)
    return max(len(pieces(stop - start, execution.at_once, execution.unit)) for start, stop in shares)


def clip_over(group: dist.ProcessGroup) -> Callable[[Sequence[nn.Parameter], float], None]:
    """As `nn.utils.clip_grad_norm_`, where each seat of the group holds other parts of the gradients."""

    def clip(parameters: Sequence[nn.Parameter], most: float) -> None:
        grads = [local(weight.grad) for weight in parameters if weight.grad is not None]
        square = nn.utils.get_total_norm(grads).square()
        dist.all_reduce(square, group=group)
        # Never divided on the host, which would have to wait for the device.
        torch._foreach_mul_(grads, (most / (square.sqrt() + 1e-6)).clamp(max=1.0))

    return clip


def shard_over(
    workload: Workload, core: nn.Module, mesh: DeviceMesh, options: StrategyOptions, *, compiled: bool
) -> None:
    """`fully_shard` over a mesh of one dimension, or of replicas and shards, unit by unit."""
    for weight in core.parameters():
        # Only the plain layout can be cut; images may still come in another.
        weight.data = weight.data.contiguous()
    how: dict[str, Any] = {"mesh": mesh}
    if options.offload == "cpu":
        how["offload_policy"] = CPUOffloadPolicy()
    if options.narrow:
        # Inputs are left to autocast, as they are everywhere else.
        how["mp_policy"] = MixedPrecisionPolicy(torch.bfloat16, torch.float32, cast_forward_inputs=False)
    found = units(workload, core)
    out_of_place(core)
    groups = [found[first : first + options.group] for first in range(0, len(found), options.group)]
    for group in groups:
        fully_shard(list(group), reshard_after_forward=options.reshard, **how)
    root = fully_shard(core, **how)
    # All of a group are known by any of it; its weights are asked for again when its last one's gradient comes.
    parts = [cast(FSDPModule, group[-1]) for group in groups]
    if not compiled:
        names = {id(layer): name for name, layer in core.named_modules()}
        watch_first_pass(core, {names[id(group[-1])]: group[-1] for group in groups})
    for number, part in enumerate(parts if options.prefetch else ()):
        part.set_modules_to_forward_prefetch(parts[number + 1 : number + 1 + options.prefetch])
        part.set_modules_to_backward_prefetch(parts[max(0, number - options.prefetch) : number][::-1])
    if mesh.device_type == "cpu":
        # gloo knows no mean.
        for part in (*parts, root):
            part.set_force_sum_reduction_for_comms(True)


def _core(placed: nn.Module) -> nn.Module:
    """The network itself, where it is to be compiled."""
    return cast(nn.Module, getattr(placed, "_orig_mod", placed))


@contextmanager
def held(wrapped: nn.Module) -> Iterator[None]:
    """Within it gradients are added up on the seat alone."""
    root = cast(FSDPModule, _core(wrapped))
    root.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        root.set_requires_gradient_sync(True)
