"""Whole values of distributed tensors, and a seat's part of whole ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.distributed.tensor import DTensor, distribute_tensor

from escala.strategies.base import State


def local(value: Any) -> Any:
    """This seat's part of a tensor; what is whole, or no tensor, as it is."""
    # `to_local` would note the way back, even of gradients.
    return value._local_tensor if isinstance(value, DTensor) else value


def part_of(weight: Tensor | None, value: Any) -> Any:
    """A value that an optimiser holds of its seat's part of a weight, as the part of a whole that it is."""
    if not isinstance(weight, DTensor) or not isinstance(value, Tensor) or isinstance(value, DTensor):
        return value
    if value.shape != local(weight).shape:
        return value
    return DTensor.from_local(
        value, weight.device_mesh, weight.placements, run_check=False, shape=weight.shape, stride=weight.stride()
    )


def step_on_parts(optimizer: torch.optim.Optimizer) -> None:
    """From now on its steps see this seat's parts as plain tensors, and so its state holds plain ones, too.

    DTensors would decide anew for each weight in each step what none of them needs to be told: every operation of an
    optimiser goes element by element. Of 290 small weights a fused AdamW took five times as long.
    """
    parts: dict[Tensor, Tensor] = {
        weight: nn.Parameter(local(weight), requires_grad=False)
        for group in optimizer.param_groups
        for weight in group["params"]
        if isinstance(weight, DTensor)
    }
    back: dict[Tensor, Tensor] = {part: weight for weight, part in parts.items()}

    def exchange(pairs: Mapping[Tensor, Tensor]) -> None:
        for group in optimizer.param_groups:
            group["params"] = [pairs.get(weight, weight) for weight in group["params"]]
        for known in [weight for weight in optimizer.state if weight in pairs]:
            optimizer.state[pairs[known]] = optimizer.state.pop(known)

    def begin(*_: Any) -> None:
        for weight, part in parts.items():
            # A weight that was moved or loaded may lie elsewhere by now.
            part.data = local(weight)
            part.grad = local(weight.grad)
        exchange(parts)

    def end(*_: Any) -> None:
        exchange(back)
        for part in back:
            part.grad = None

    optimizer.register_step_pre_hook(begin)
    optimizer.register_step_post_hook(end)


def cut_over(value: Tensor) -> frozenset[str]:
    """The names of the dimensions of its mesh over which a value is cut."""
    if not isinstance(value, DTensor):
        return frozenset()
    pairs = zip(value.device_mesh.mesh_dim_names or (), value.placements, strict=True)
    return frozenset(name for name, placement in pairs if not placement.is_replicate())


def gathered(value: Any, *, keep: bool) -> Any:
    """Put together wherever it is cut, in host memory; all seats call it, and who does not `keep` it has nothing."""
    if isinstance(value, DTensor):
        # Parts that were put aside in host memory meet on the device, as all others do.
        full = cast(DTensor, value.to(value.device_mesh.device_type)).full_tensor()
        return full.cpu() if keep else full.new_empty(0)
    if isinstance(value, dict):
        return {key: gathered(item, keep=keep) for key, item in value.items()}
    return value


def cut_as(weight: Tensor | None, value: Any) -> Any:
    """This seat's part of a value that belongs to a weight, if it has the weight's shape. Nothing is exchanged."""
    if not isinstance(weight, DTensor) or not isinstance(value, Tensor) or value.shape != weight.shape:
        return value
    there = value.to(weight.device_mesh.device_type)
    return distribute_tensor(there, weight.device_mesh, weight.placements, src_data_rank=None)


def whole_state(snapshot: State, core: nn.Module, *, keep: bool) -> State:
    """The state of the whole network from what seats hold; all of them call it, and who does not `keep` it has
    nothing of it."""
    own, optimizer = core.state_dict(), snapshot["optimizer"]
    joined = {
        name: {key: part_of(own.get(name), value) for key, value in values.items()}
        for name, values in optimizer["state"].items()
    }
    return cast(State, gathered(snapshot | {"optimizer": optimizer | {"state": joined}}, keep=keep))


def part_state(state: State, core: nn.Module) -> State:
    """The reverse, from a state of any strategy; nothing is exchanged."""
    own, optimizer = core.state_dict(), state["optimizer"]
    parts = {
        name: {key: local(cut_as(own.get(name), value)) for key, value in values.items()}
        for name, values in optimizer["state"].items()
    }
    return state | {
        "model": {name: cut_as(own.get(name), value) for name, value in state["model"].items()},
        "optimizer": optimizer | {"state": parts},
    }
