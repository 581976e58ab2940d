"""Nested plain data with tensors in it, of every seat, brought together on rank 0. No pickle: texts are JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import torch
import torch.distributed as dist
from torch import Tensor

from escala.execution.pack import pack, unpack

_Kinds = list[tuple[str, tuple[int, ...], str]]


def gathered(own: Any) -> list[Any]:
    """What every seat gave, by rank, with tensors in host memory; on seats other than rank 0 an empty list.

    All seats call it together; they may give things of other shapes. Raises CKPT-STATE as `pack` does.
    """
    tensors, plain = pack(own, "own")
    kinds = [(name, tuple(value.shape), str(value.dtype).removeprefix("torch.")) for name, value in tensors.items()]
    text = torch.frombuffer(bytearray(msgspec.json.encode([plain, kinds])), dtype=torch.uint8)
    sizes = torch.zeros(dist.get_world_size(), dtype=torch.int64)
    sizes[dist.get_rank()] = len(text)
    # Host tensors go by gloo, whatever the gradients go by.
    dist.all_reduce(sizes)
    if dist.get_rank() > 0:
        for value in (text, *(_bytes(tensor) for tensor in tensors.values())):
            if len(value):
                dist.send(value, 0)
        return []
    return [own, *(_received(rank, size) for rank, size in enumerate(sizes.tolist()) if rank)]


def _received(rank: int, size: int) -> Any:
    text = torch.empty(size, dtype=torch.uint8)
    dist.recv(text, rank)
    plain, kinds = msgspec.json.decode(text.numpy().tobytes(), type=tuple[Any, _Kinds])
    tensors = dict[str, Tensor]()
    for name, shape, kind in kinds:
        tensors[name] = torch.empty(shape, dtype=getattr(torch, kind))
        if tensors[name].numel():
            dist.recv(_bytes(tensors[name]), rank)
    return unpack(plain, tensors)


def _bytes(tensor: Tensor) -> Tensor:
    """The same memory, as bytes: gloo has no name for some formats."""
    return tensor.reshape(-1).view(torch.uint8)
