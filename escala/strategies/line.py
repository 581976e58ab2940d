"""Where one seat stands in its pipeline, and the process groups by which it speaks to the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from escala.terms.experiment import PipelineSchedule


@dataclass(frozen=True)
class Line:
    """A pipeline of `seats` seats with `chunks` stages each, one of `replicas` alike; this seat is its `place`-th."""

    schedule: PipelineSchedule
    seats: int
    chunks: int
    replicas: int
    replica: int
    place: int

    @property
    def stages(self) -> int:
        return self.seats * self.chunks

    @property
    def hops(self) -> tuple[tuple[int, int], ...]:
        """From which place to which outputs go in a pipeline; from the last back to the first where stages follow."""
        around = [(self.seats - 1, 0)] if self.chunks > 1 else []
        return tuple((place, place + 1) for place in range(self.seats - 1)) + tuple(around)

    @property
    def own(self) -> range:
        """The stages of this seat."""
        return range(self.place, self.stages, self.seats)

    def rank_of(self, stage: int) -> int:
        """Who holds a stage of this pipeline."""
        return self.replica * self.seats + stage % self.seats


@dataclass(frozen=True)
class Channels:
    """A group for whatever goes from one seat to another: `ahead` outputs, `back` gradients, by (sender, receiver).

    What goes by one group goes in turn. So by one for both directions a transfer would wait for the other side's.
    """

    ahead: Mapping[tuple[int, int], Any]
    back: Mapping[tuple[int, int], Any]


@dataclass(frozen=True)
class Groups:
    """`whole`: the seats of this pipeline. `channels`: by sender and receiver, ranks, those two for each way.

    `alike`: the seats with the same stages; None: there is no other. `tied`: weights that several seats of a pipeline
    hold, with the group of their holders.
    """

    whole: Any
    channels: Channels
    alike: Any | None
    tied: tuple[tuple[nn.Parameter, Any], ...]


def groups_of(line: Line, tied: Sequence[tuple[nn.Parameter, Sequence[int]]]) -> Groups:
    """All groups of all seats are opened by all seats in the same order, as torch demands.

    `tied`: weights with the places of their holders.
    """
    starts = [replica * line.seats for replica in range(line.replicas)]
    whole = [dist.new_group([start + place for place in range(line.seats)]) for start in starts]
    hops = [(start + sender, start + receiver) for start in starts for sender, receiver in line.hops]
    ahead = {hop: dist.new_group(sorted(hop)) for hop in hops}
    back = {hop[::-1]: dist.new_group(sorted(hop)) for hop in hops}
    alike = [dist.new_group([start + place for start in starts]) for place in range(line.seats if starts[1:] else 0)]
    holders = list(dict.fromkeys(tuple(places) for _, places in tied))
    among = {places: [dist.new_group([start + place for place in places]) for start in starts] for places in holders}
    return Groups(
        whole[line.replica],
        Channels(ahead, back),
        alike[line.place] if alike else None,
        tuple((weight, among[tuple(places)][line.replica]) for weight, places in tied if line.place in places),
    )


def add_up_gradients(parameters: Sequence[nn.Parameter], groups: Groups, *, detect: bool) -> None:
    """Sums of the gradients over those who hold the same weights. All seats call it after the last way back.

    With `detect` a weight that got no gradient on any seat keeps none; else it counts as one of zeros.
    """
    for weight, group in groups.tied:
        weight.grad = torch.zeros_like(weight) if weight.grad is None else weight.grad
        dist.all_reduce(weight.grad, group=group)
    if groups.alike is None:
        return
    trained = [weight for weight in parameters if weight.requires_grad]
    if detect and trained:
        used = torch.tensor([weight.grad is not None for weight in trained], dtype=torch.int32)
        dist.all_reduce(used, op=dist.ReduceOp.MAX, group=groups.alike)
        trained = [weight for weight, some in zip(trained, used.tolist(), strict=True) if some]
    for dtype in dict.fromkeys(weight.dtype for weight in trained):
        some = [weight for weight in trained if weight.dtype is dtype]
        gradients = [torch.zeros_like(weight) if weight.grad is None else weight.grad for weight in some]
        # One exchange for all of them: small ones cost as much as large ones.
        line = torch.cat([one.reshape(-1) for one in gradients])
        dist.all_reduce(line, group=groups.alike)
        for weight, own, summed in zip(some, gradients, line.split([one.numel() for one in gradients]), strict=True):
            weight.grad = own.copy_(summed.view(own.shape))


def clip_over(
    parameters: Sequence[nn.Parameter], most: float, *, counted: Sequence[nn.Parameter], group: Any, nothing: Tensor
) -> None:
    """Make the norm of all gradients of a pipeline no larger than `most`; each seat adds those `counted` on it.

    `nothing`: a zero of the weights' type on the seat's device, for a stage that has none.
    """
    gradients = [weight.grad for weight in counted if weight.grad is not None]
    squared = torch.nn.utils.get_total_norm(gradients).square() if gradients else nothing.clone()
    dist.all_reduce(squared, group=group)
    torch.nn.utils.clip_grads_with_norm_(parameters, most, squared.sqrt())
