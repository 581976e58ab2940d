"""A network as a row of parts, each of which takes what the one before gives: where it may be cut."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.dropout import _DropoutNd

from escala.execution.regions import is_sequence
from escala.terms.errors import Unfit
from escala.workloads.attention import Attend
from escala.workloads.base import Workload

Carried = Tensor | tuple[Tensor, ...]
"""What goes from part to part."""

_SHOWN = 5


class Part(NamedTuple):
    """One part and its name in the network."""

    name: str
    module: nn.Module


def parts_of(workload: Workload, model: nn.Module) -> tuple[Part, ...]:
    """The children of an `nn.Sequential`, or else `workload.blocks`, in the order of the way forward.

    Raises `Unfit` where weights or buffers lie outside of them. Whether they are the whole way forward is for
    `check_whole` to say.
    """
    # Not its `children`, which name a module only once, however often it stands there.
    modules = tuple(model) if isinstance(model, nn.Sequential) and is_sequence(model) else workload.blocks(model)
    names = {module: name for name, module in model.named_modules() if module is not model}
    strange = [type(module).__name__ for module in modules if module not in names]
    inside = {id(value) for module in modules for value in (*module.parameters(), *module.buffers())}
    values = (*model.named_parameters(), *model.named_buffers())
    outside = [name for name, value in values if id(value) not in inside]
    if strange:
        raise Unfit(f"{_way_out(model)}; the {strange[0]} in its blocks is none of its own modules")
    if outside or not modules:
        shown = ", ".join(outside[:_SHOWN]) + ("" if len(outside) <= _SHOWN else ", ...")
        raise Unfit(f"{_way_out(model)}; outside of its blocks it has {shown or 'everything'}")
    return tuple(Part(names[module], module) for module in modules)


def check_whole(model: nn.Module, parts: Sequence[Part], inputs: Tensor) -> None:
    """Raises `Unfit` where the parts, one after the other, give something else than the network for these rows."""
    if is_sequence(model):
        return
    was = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            whole, carried = model(inputs), inputs
            for part in parts:
                carried = part.module.eval()(carried)
        same = isinstance(whole, Tensor) and isinstance(carried, Tensor) and torch.equal(whole, carried)
        why = "" if same else "they give other outputs"
    except (RuntimeError, TypeError, ValueError, AttributeError, IndexError) as error:
        why = f"one of them does not take what the one before gives: {str(error).splitlines()[0]}"
    finally:
        for module, training in was.items():
            module.training = training
    if why:
        raise Unfit(f"{_way_out(model)}; its blocks, one after the other, are not its way forward: {why}")


def check_seats(holders: Sequence[tuple[Part, int]]) -> None:
    """Raises `Unfit` where one module of several seats keeps or draws something that they would have in common.

    `holders` are parts with the seat that holds each. Weights may be shared: their gradients are added up.
    """
    check_buffers(holders)
    for module in _shared(holders):
        if isinstance(module, _DropoutNd | Attend):
            raise _standing_twice(module)


def check_buffers(holders: Sequence[tuple[Part, int]]) -> None:
    """Raises `Unfit` where one module of several stages has buffers, of which each stage would have its own."""
    for module in _shared(holders):
        if any(True for _ in module.buffers(recurse=False)):
            raise _standing_twice(module)


def _shared(holders: Sequence[tuple[Part, int]]) -> list[nn.Module]:
    found = dict[nn.Module, set[int]]()
    for part, holder in holders:
        for module in part.module.modules():
            found.setdefault(module, set()).add(holder)
    return [module for module, held in found.items() if len(held) > 1]


def _standing_twice(module: nn.Module) -> Unfit:
    kind = type(module).__name__
    return Unfit(f"one {kind} stands in several stages, which cannot share it; give each place a {kind} of its own")


def under_names(parts: Sequence[Part]) -> nn.Module:
    """A module that holds these parts under their names in the network, and is not called itself."""
    root = nn.Module()
    for part in parts:
        parent = root
        *path, own = part.name.split(".")
        for step in path:
            if step not in parent._modules:
                parent.add_module(step, nn.Module())
            parent = parent.get_submodule(step)
        parent.add_module(own, part.module)
    return root


def alone(part: Part, device: torch.device) -> nn.Module:
    """A copy of a part on a device, which may be run without a trace in the network."""
    # Told where its values are, it copies them there at once, and not within the host's memory first.
    there: dict[int, Any] = {id(value): value.to(device, copy=True) for value in part.module.buffers()}
    for weight in part.module.parameters():
        there[id(weight)] = nn.Parameter(weight.detach().to(device, copy=True), weight.requires_grad)
    return copy.deepcopy(part.module, there)


def tensors_of(carried: object) -> tuple[Tensor, ...]:
    """The tensors that one part hands to the next. Raises `Unfit` for anything else."""
    if isinstance(carried, Tensor):
        return (carried,)
    if isinstance(carried, tuple) and carried and all(isinstance(one, Tensor) for one in carried):
        return carried
    raise Unfit(f"a block gives a {type(carried).__name__}; from stage to stage goes a tensor, or a tuple of tensors")


def _way_out(model: nn.Module) -> str:
    return (
        f"a {type(model).__name__} cannot be cut: make it an nn.Sequential, or give it (or its Workload) a method "
        "blocks() that returns its modules in the order in which each takes what the one before gives"
    )
