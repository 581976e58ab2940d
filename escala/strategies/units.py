"""Which parts of a network are gathered and freed together, when its weights are sharded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from torch import nn

from escala.workloads.base import Workload
from escala.workloads.user import OwnModel

PARTS = 8
"""A network without blocks is cut, where it can be, until no part holds more than one number in so many."""
LEAST = 128
"""What holds less than one in so many numbers stays with the rest: its own exchange would cost more than it saves."""
_ONLY_HOLD = (nn.ModuleList, nn.ModuleDict)


def units(workload: Workload, model: nn.Module) -> tuple[nn.Module, ...]:
    """Parts of `model` that share no parameter with what is outside them, in order; what they leave is the root's.

    The workload's blocks; of a plain `nn.Module`, which has none, parts by size. PyTorch's own layers stay whole,
    since some reach into their children without calling them.
    """
    total = sum(weight.numel() for weight in model.parameters())
    parts: Iterable[nn.Module] = workload.blocks(model)
    if isinstance(workload, OwnModel):
        parts = (part for child in parts for part in _cut(child, total / PARTS))
    within = Counter(id(weight) for layer in model.modules() for weight in layer.parameters(recurse=False))
    return tuple(
        part
        for part in parts
        if part is not model and _size(part) * LEAST >= max(total, 1) and _keeps_to_itself(part, within)
    )


def _cut(part: nn.Module, most: float) -> Iterator[nn.Module]:
    """The part itself if it is small enough or cannot be cut; else its children, cut in turn."""
    holds = isinstance(part, _ONLY_HOLD)
    whole = type(part).__module__.startswith("torch.nn.") and not isinstance(part, (nn.Sequential, *_ONLY_HOLD))
    own = any(True for _ in part.parameters(recurse=False))
    if not holds and (whole or own or _size(part) <= most):
        yield part
        return
    for child in part.children():
        yield from _cut(child, most)


def _keeps_to_itself(part: nn.Module, within: Counter[int]) -> bool:
    mine = Counter(id(weight) for layer in part.modules() for weight in layer.parameters(recurse=False))
    return all(many == within[weight] for weight, many in mine.items())


def _size(part: nn.Module) -> int:
    return sum(weight.numel() for weight in part.parameters())
