"""A network that is a sequence of children, as a few shorter sequences of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from torch import Tensor, nn


class InRegions(nn.Module):
    """Goes through `regions`, which together are `whole`, in turn; modes and weights are those of `whole`.

    `whole` is a sequence of children, and each of the regions calls some of them.
    """

    def __init__(self, whole: nn.Module, regions: Sequence[Callable[[Any], Any]]) -> None:
        super().__init__()
        self.whole = whole
        self._regions = tuple(regions)

    def forward(self, inputs: Tensor) -> Any:
        """As that of `whole`."""
        carried: Any = inputs
        for region in self._regions:
            carried = region(carried)
        return carried


def cut(whole: nn.Sequential, regions: int) -> list[nn.Sequential]:
    """The children in consecutive groups, as many as `regions` if there are so many, each of about twice as many
    bytes as the one before: while gradients of one travel, the way back goes through the one before, and behind the
    way back through the first there is nothing to hide its own.

    Weights that children of several groups share do not count: their gradients are whole only with the first group's.
    """
    children = list(whole)
    holders = dict[int, set[int]]()
    for number, child in enumerate(children):
        for weight in child.parameters():
            holders.setdefault(id(weight), set()).add(number)
    sizes = [sum(w.nbytes for w in child.parameters() if len(holders[id(w)]) == 1) for child in children]
    total, many = sum(sizes), min(regions, len(children))
    ends = list(accumulate(sizes))
    bounds = [0]
    for group in range(1, many):
        # Where the bytes so far come nearest to their share, and every group has a child.
        first, last = bounds[-1] + 1, len(children) - (many - group)
        share = total * (2**group - 1) / (2**many - 1)
        bounds.append(min(range(first, last + 1), key=lambda at: abs(ends[at - 1] - share)))
    return [nn.Sequential(*children[first:last]) for first, last in pairwise([*bounds, len(children)])]


def is_sequence(model: nn.Module) -> bool:
    """Whether the network's own way forward is its children's, one after the other."""
    hooked = bool(model._forward_hooks or model._forward_pre_hooks)
    return isinstance(model, nn.Sequential) and type(model).forward is nn.Sequential.forward and not hooked
