"""Learners whose wide layers are split over seats, on PyTorch's `parallelize_module`.

As in Shoeybi et al., arXiv:1909.08053: a column layer's outputs stay where they are, each seat computes on with its
own, and the row layer that takes them in adds up what comes of them over the seats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module

from escala.execution.dropout_part import draw_in_parts
from escala.strategies.base import Learner, State
from escala.strategies.learner import Exchange, assemble
from escala.strategies.replica_sum import ReplicaSum
from escala.strategies.sharing import Sharing
from escala.strategies.splits import Split, splits, uneven
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.trial import Seat
from escala.workloads.base import Workload


def tensored(
    workload: Workload,
    model: nn.Module,
    seat: Seat,
    train: TrainSpec,
    execution: ExecutionSpec,
    shape: tuple[int, int],
) -> Learner:
    """The learner of one seat of a mesh (replicas, parts).

    To shard each replica as well, `fully_shard` goes over the "replicas" of the same mesh in `split`, after the
    layers are parallelised, and `ReplicaSum` falls away. Raises `Unfit` as `splits` does.
    """
    replicas, parts = shape
    plan = splits(workload, model)
    if reason := uneven(plan, parts):
        raise Unfit(reason)
    mesh = init_device_mesh(seat.devices[0].split(":")[0], shape, mesh_dim_names=("replicas", "parts"))
    within = mesh["parts"]

    def split(placed: nn.Module) -> nn.Module:
        core = cast(nn.Module, getattr(placed, "_orig_mod", placed))
        watch = draw_in_parts(core, within.get_local_rank(), parts)
        # All seats have drawn the same weights, so each takes its part of its own. Only then do whole ones leave host
        # memory: no device ever holds all of the layers that are split.
        parallelize_module(core, within, styles(plan), src_data_rank=None)
        core.to(torch.device(seat.devices[0]))
        watch(placed)
        return placed

    def sharing(core: nn.Module, optimizer: torch.optim.Optimizer) -> Sharing:
        origins = part_groups(optimizer)
        names = [name for name, _ in core.named_parameters()]
        return Sharing(
            whole=lambda snapshot: _whole(snapshot, origins, names),
            part=lambda state: _part(state, core),
            clip=lambda parameters, most: clip_parts(parameters, most, within.get_group()),
            partners=parts,
        )

    def exchange(placed: nn.Module) -> Exchange:
        return ReplicaSum(list(placed.parameters()), mesh.get_group("replicas"), detect=execution.unused == "detect")

    return assemble(
        workload,
        model,
        seat,
        train,
        execution,
        place=lambda whole, _: whole,
        wrap=split,
        sharing=sharing,
        exchange=exchange if replicas > 1 else None,
    )


def styles(plan: Iterable[Split]) -> dict[str, ParallelStyle]:
    """How PyTorch splits each layer of a plan.

    What column layers give goes in parts to the row layer after them in the plan; where there is none, it is put
    together. A row layer without column layers before it is given whole inputs.
    """
    found = dict[str, ParallelStyle]()
    columns = list[str]()
    for split in plan:
        if split.way == "column":
            columns.append(split.name)
            found[split.name] = ColwiseParallel()
        else:
            found[split.name] = RowwiseParallel() if columns else RowwiseParallel(input_layouts=Replicate())
            columns = []
    return found | {name: ColwiseParallel(output_layouts=Replicate()) for name in columns}


def part_groups(optimizer: torch.optim.Optimizer) -> list[int]:
    """Part each group into weights that are whole and weights that are split: kernels over many take one kind only.

    Returns the number of the group that each of the new ones came from.
    """
    parted = [
        (number, group | {"params": weights})
        for number, group in enumerate(optimizer.param_groups)
        for split in (False, True)
        if (weights := [weight for weight in group["params"] if isinstance(weight, DTensor) is split])
    ]
    optimizer.param_groups[:] = [group for _, group in parted]
    return [number for number, _ in parted]


def clip_parts(parameters: Sequence[nn.Parameter], most: float, group: dist.ProcessGroup) -> None:
    """As `nn.utils.clip_grad_norm_`, where the seats of the group hold parts of some gradients and all of others."""
    grads = [weight.grad for weight in parameters if weight.grad is not None]
    cut = [_local(grad) for grad in grads if _is_cut(grad)]
    whole = [_local(grad) for grad in grads if not _is_cut(grad)]
    square = nn.utils.get_total_norm(cut).square()
    dist.all_reduce(square, group=group)
    square = square + nn.utils.get_total_norm(whole).square()
    # Never divided on the host, which would have to wait for the device.
    torch._foreach_mul_([*cut, *whole], (most / (square.sqrt() + 1e-6)).clamp(max=1.0))


def _is_cut(value: Tensor) -> bool:
    return isinstance(value, DTensor) and any(placement.is_shard() for placement in value.placements)


def _local(value: Tensor) -> Tensor:
    return value.to_local() if isinstance(value, DTensor) else value


def _whole(snapshot: State, origins: Sequence[int], names: Sequence[str]) -> State:
    """On rank 0 everything in host memory; elsewhere nothing is kept of what was put together."""
    state = cast(State, _gathered(snapshot, keep=dist.get_rank() == 0))
    groups = dict[int, State]()
    for origin, group in zip(origins, state["optimizer"]["groups"], strict=True):
        known = groups.setdefault(origin, group | {"params": []})
        known["params"] = sorted([*known["params"], *group["params"]], key=names.index)
    return state | {"optimizer": state["optimizer"] | {"groups": list(groups.values())}}


def _gathered(value: Any, *, keep: bool) -> Any:
    if isinstance(value, DTensor):
        full = value.full_tensor()
        return full.cpu() if keep else full.new_empty(0)
    if isinstance(value, dict):
        return {key: _gathered(item, keep=keep) for key, item in value.items()}
    return value


def _part(state: State, core: nn.Module) -> State:
    """The reverse, from a state of any strategy; nothing is exchanged."""
    own = core.state_dict()
    optimizer = state["optimizer"]
    return state | {
        "model": {name: _cut_as(own.get(name), value) for name, value in state["model"].items()},
        "optimizer": {
            "state": {
                name: {key: _cut_as(own.get(name), value) for key, value in values.items()}
                for name, values in optimizer["state"].items()
            },
            "groups": [
                group | {"params": names}
                for group in optimizer["groups"]
                for split in (False, True)
                if (names := [name for name in group["params"] if isinstance(own.get(name), DTensor) is split])
            ],
        },
    }


def _cut_as(weight: Tensor | None, value: Any) -> Any:
    """This seat's part of a value that belongs to a weight, if it has the weight's shape."""
    if not isinstance(weight, DTensor) or not isinstance(value, Tensor) or value.shape != weight.shape:
        return value
    there = value.to(weight.device)
    return distribute_tensor(there, weight.device_mesh, weight.placements, src_data_rank=None)
