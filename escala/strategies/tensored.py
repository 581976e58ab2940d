"""Learners whose wide layers are split over seats, on PyTorch's `parallelize_module`.

As in Shoeybi et al., arXiv:1909.08053: a column layer's outputs stay where they are, each seat computes on with its
own, and the row layer that takes them in adds up what comes of them over the seats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import cast

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, ParallelStyle, RowwiseParallel, parallelize_module

from escala.execution.dropout_part import draw_in_parts
from escala.strategies.base import Learner
from escala.strategies.dtensors import cut_over, local, part_state, step_on_parts, whole_state
from escala.strategies.learner import Exchange, assemble
from escala.strategies.replica_sum import ReplicaSum
from escala.strategies.sharded import held, passes_of, shard_over
from escala.strategies.sharing import Sharing
from escala.strategies.splits import Split, splits, uneven
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, StrategyOptions, TrainSpec
from escala.terms.trial import Seat
from escala.workloads.base import Workload


def tensored(
    workload: Workload,
    model: nn.Module,
    seat: Seat,
    train: TrainSpec,
    execution: ExecutionSpec,
    shape: tuple[int, int],
    options: StrategyOptions,
) -> Learner:
    """The learner of one seat of a mesh (replicas, parts).

    With `options.shard` each part is cut once more over the replicas, by `fully_shard`, which also adds up gradients.
    Raises `Unfit` as `splits` does.
    """
    replicas, parts = shape
    plan = splits(workload, model)
    if reason := uneven(plan, parts):
        raise Unfit(reason)
    mesh = init_device_mesh(seat.devices[0].split(":")[0], shape, mesh_dim_names=("replicas", "parts"))
    within = mesh["parts"]
    groups = {name: mesh.get_group(name) for name in ("replicas", "parts")}

    def split(placed: nn.Module) -> nn.Module:
        core = cast(nn.Module, getattr(placed, "_orig_mod", placed))
        watch = draw_in_parts(core, within.get_local_rank(), parts)
        # All seats have drawn the same weights, so each takes its part of its own. Only then do whole ones leave host
        # memory: no device ever holds all of the layers that are split.
        parallelize_module(core, within, styles(plan), src_data_rank=None)
        core.to(torch.device(seat.devices[0]))
        if options.shard:
            shard_over(workload, core, mesh["replicas"], options, compiled=bool(execution.compile))
        watch(placed)
        return placed

    def sharing(core: nn.Module, optimizer: torch.optim.Optimizer) -> Sharing:
        step_on_parts(optimizer)
        return Sharing(
            whole=lambda snapshot: whole_state(snapshot, core, keep=dist.get_rank() == 0),
            part=lambda state: part_state(state, core),
            clip=lambda parameters, most: clip_parts(parameters, most, groups),
            together=options.shard,
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
        exchange=exchange if replicas > 1 and not options.shard else None,
        averaged_over=replicas if options.shard else 1,
        hold=held if options.shard else lambda _: nullcontext(),
        passes=passes_of(train.batch, replicas, execution) if options.shard else 1,
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


def clip_parts(parameters: Sequence[nn.Parameter], most: float, groups: Mapping[str, dist.ProcessGroup]) -> None:
    """As `nn.utils.clip_grad_norm_`, where seats hold parts of gradients.

    `groups` are those of the mesh by name. What is cut over one of them is added up over its seats, and what is whole
    there is not.
    """
    grads = [weight.grad for weight in parameters if weight.grad is not None]
    if not grads:
        return
    kinds = dict[frozenset[str], list[Tensor]]()
    for grad in grads:
        kinds.setdefault(cut_over(grad), []).append(local(grad))
    squares = {kind: nn.utils.get_total_norm(some).square() for kind, some in kinds.items()}
    for name, group in groups.items():
        if cut := [kind for kind in squares if name in kind]:
            line = torch.stack([squares[kind] for kind in cut])
            dist.all_reduce(line, group=group)
            squares |= dict(zip(cut, line.unbind(), strict=True))
    norm = torch.stack(list(squares.values())).sum().sqrt()
    # Never divided on the host, which would have to wait for the device.
    torch._foreach_mul_([local(grad) for grad in grads], (most / (norm + 1e-6)).clamp(max=1.0))
