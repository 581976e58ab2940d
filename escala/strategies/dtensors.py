"""Whole values of distributed tensors, and a seat's part of whole ones."""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor
from torch.distributed.tensor import DTensor, distribute_tensor


def local(value: Tensor) -> Tensor:
    """This seat's part, or the tensor itself where it is whole."""
    return value.to_local() if isinstance(value, DTensor) else value


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
