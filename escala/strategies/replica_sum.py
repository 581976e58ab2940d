"""Gradients added up across replicas whose seats hold the same parts of a network."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from escala.terms.errors import EscalaError

BUCKET = 32 * 2**20
"""Bytes that are sent at once: enough that a start costs little, and little beside the gradients themselves."""


class ReplicaSum:
    """One exchange after the last way back of a step, over the seats of `group`, one of each replica.

    Every seat must have a gradient for every parameter that is trained, or, with `detect`, one of the seats; where
    none has, none gets one. `wait_s` is the process group's own business.
    """

    wait_s: float = 0.0
    outside: int = 0

    def __init__(
        self, parameters: Sequence[nn.Parameter], group: dist.ProcessGroup, *, detect: bool, bucket: int = BUCKET
    ) -> None:
        self._parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self._group = group
        self._detect = detect
        self._bucket = bucket

    def __call__(self) -> None:
        """Raises MODEL-UNUSED where a parameter got no gradient, without `detect`."""
        used = self._used()
        for bucket in buckets([_local(parameter.grad) for parameter in used], self._bucket):
            line = torch.cat([grad.reshape(-1) for grad in bucket])
            dist.all_reduce(line, group=self._group)
            parts = line.split([grad.numel() for grad in bucket])
            torch._foreach_copy_(bucket, [part.view(grad.shape) for part, grad in zip(parts, bucket, strict=True)])

    def _used(self) -> list[nn.Parameter]:
        if not self._detect:
            if any(parameter.grad is None for parameter in self._parameters):
                raise EscalaError(
                    "MODEL-UNUSED",
                    "the network",
                    "a parameter got no gradient in this step",
                    next_step='set execution.unused = "detect", which looks for them in every step',
                )
            return self._parameters
        found = torch.tensor([parameter.grad is not None for parameter in self._parameters], dtype=torch.int32)
        dist.all_reduce(found, dist.ReduceOp.MAX, group=self._group)
        used = [parameter for parameter, one in zip(self._parameters, found.tolist(), strict=True) if one]
        for parameter in used:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
        return used


def buckets(grads: Sequence[Tensor], most: int) -> list[list[Tensor]]:
    """In turn, of one number format each, and of `most` bytes or of one gradient."""
    found = list[list[Tensor]]()
    for dtype in dict.fromkeys(grad.dtype for grad in grads):
        room = 0
        for grad in grads:
            if grad.dtype is not dtype:
                continue
            if grad.nbytes > room:
                found.append([])
                room = most
            found[-1].append(grad)
            room -= grad.nbytes
    return found


def _local(grad: Tensor | None) -> Tensor:
    assert grad is not None
    return grad.to_local() if isinstance(grad, DTensor) else grad
