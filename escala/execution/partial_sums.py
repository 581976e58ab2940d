"""Sums of gradients over the seats while the optimiser steps: part by part, where the gradients lie.

DDP copies gradients into buckets and sends these during the way back. That hides the exchange, but a captured,
compiled step pays for it: the copies take as long as many layers, the graph is cut where buckets end, and a weight
that the first layer shares with the last one is ready when nothing is left to hide behind. Here nothing is copied and
nothing cut; what the exchange hides behind is the step of the optimiser on the parts that came before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch.distributed as dist
from torch import Tensor, nn

from escala.execution.stepping import Arrived
from escala.terms.errors import EscalaError

PARTS = 8
"""The more parts, the less of the last one's step is left over, and the more often all seats must meet."""

_ASKED = "overlap = optimizer"


class PartialSums:
    """Adds up gradients over the seats; called by all of them after each step's last backward pass.

    `parameters` have the same shapes in the same order on every seat. A process group must exist, and decides how
    long to wait: `wait_s` is not used.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], rank: int) -> None:
        self.wait_s = 0.0
        self.outside = 0
        self._rank = rank
        self._parts = in_parts(parameters, PARTS)

    def __call__(self) -> Iterator[Arrived]:
        """Begin to make every gradient the sum over the seats; gives each part as soon as later work may use it.

        Raises `MODEL-UNUSED` for a parameter that has none, and `MODEL-SPARSE` for a sparse one.
        """
        group = dist.group.WORLD
        assert group is not None
        parts = [[(weight, gradient_of(weight, self._rank, _ASKED)) for weight in part] for part in self._parts]
        # All are begun before the first is waited for.
        works = [group.allreduce_coalesced([gradient for _, gradient in part]) for part in parts]
        return _in_turn(parts, works)


def gradient_of(parameter: nn.Parameter, rank: int, asked: str) -> Tensor:
    """Of this seat alone. Raises `MODEL-UNUSED` where there is none, and `MODEL-SPARSE`.

    `asked`: the key of the execution, and its value, by which gradients are added up like this.
    """
    gradient, without = parameter.grad, f"leave execution.{asked.partition(' ')[0]} out"
    if gradient is None:
        raise EscalaError(
            "MODEL-UNUSED",
            f"rank {rank}",
            f"a parameter of shape {tuple(parameter.shape)} got no gradient in a step",
            next_step=f'take it out, or {without} and set execution.unused = "detect"',
        )
    if gradient.is_sparse:
        raise EscalaError(
            "MODEL-SPARSE",
            f"rank {rank}",
            f"{asked} cannot add up sparse gradients",
            next_step=f"make the embedding dense, or {without}",
        )
    return gradient


def _in_turn(parts: Sequence[Arrived], works: Sequence[dist.Work]) -> Iterator[Arrived]:
    for part, work in zip(parts, works, strict=True):
        work.wait()
        yield part


def in_parts(parameters: Sequence[nn.Parameter], most: int) -> list[list[nn.Parameter]]:
    """Parameters of one type in about `most` parts of as many bytes, each by its first.

    A larger one is a part of its own; those on both sides of it may share one, as it takes long to meet for little.
    """
    found, last = list[list[nn.Parameter]](), list[nn.Parameter]()
    room = sum(one.nbytes for one in parameters) / most
    for parameter in parameters:
        if parameter.nbytes > room:
            found.append([parameter])
            continue
        alike = bool(last) and last[0].dtype == parameter.dtype
        if not alike or sum(one.nbytes for one in last) + parameter.nbytes / 2 > room:
            last = []
            found.append(last)
        last.append(parameter)
    return found
