"""An optimiser of which every seat makes a part: the first stage of ZeRO (Rajbhandari et al., arXiv:1910.02054)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn

from escala.strategies.base import State
from escala.strategies.sharing import Sharing
from escala.strategies.union import gathered


def owners(sizes: Sequence[int], ways: int) -> list[int]:
    """Which of `ways` seats steps each parameter: the largest first, always to the seat that has least."""
    loads = [(0, seat) for seat in range(ways)]
    found = [0] * len(sizes)
    for number in sorted(range(len(sizes)), key=lambda number: -sizes[number]):
        load, seat = loads[0]
        found[number] = seat
        heapq.heapreplace(loads, (load + sizes[number], seat))
    return found


def part_optimizer(core: nn.Module, optimizer: torch.optim.Optimizer, rank: int, ways: int) -> Sharing:
    """Have `optimizer` step this seat's parameters alone, and then every seat take over what the others stepped.

    Every seat must hold the whole gradient, as after DDP's backward. An optimiser passes by what has no gradient, so
    it makes no state for the parameters of others, whose gradients are gone after the step.
    """
    trained = [weight for group in optimizer.param_groups for weight in group["params"] if weight.requires_grad]
    seats = owners([weight.numel() for weight in trained], ways)
    parts = [[weight for weight, seat in zip(trained, seats, strict=True) if seat == other] for other in range(ways)]
    lines = [_in_lines(part) for part in parts]

    def forget(*_: object) -> None:
        for other, part in enumerate(parts):
            for weight in part if other != rank else ():
                weight.grad = None

    def exchange(*_: object) -> None:
        sent = [dist.broadcast(line, seat, async_op=True) for seat, own in enumerate(lines) for line in own]
        for one in sent:
            one.wait()

    optimizer.register_step_pre_hook(forget)
    optimizer.register_step_post_hook(exchange)
    names = {id(weight): name for name, weight in core.named_parameters()}
    mine = {names[id(weight)] for weight in parts[rank]}

    def whole(snapshot: State) -> State:
        states = gathered(snapshot["optimizer"]["state"])
        found = {name: values for state in states for name, values in state.items()}
        # In the order of the network, as one optimiser alone would have it.
        ordered = {name: found[name] for name in names.values() if name in found}
        return snapshot | {"optimizer": snapshot["optimizer"] | {"state": ordered}}

    def part(state: State) -> State:
        own = {name: values for name, values in state["optimizer"]["state"].items() if name in mine}
        return state | {"optimizer": state["optimizer"] | {"state": own}}

    return Sharing(whole=whole, part=part)


def _in_lines(weights: Sequence[nn.Parameter]) -> list[Tensor]:
    """Move weights into one line of memory for each number format, where one exchange reaches all of them."""
    lines = list[Tensor]()
    for dtype in dict.fromkeys(weight.dtype for weight in weights):
        some = [weight for weight in weights if weight.dtype is dtype]
        line = torch.empty(sum(weight.numel() for weight in some), dtype=dtype, device=some[0].device)
        start = 0
        for weight in some:
            # With the same strides, so that a layout of images stays; weights that overlap themselves become plain.
            strides = torch.empty_like(weight, device="meta").stride()
            place = line.as_strided(weight.shape, strides, start)
            weight.data = place.copy_(weight.detach())
            start += weight.numel()
        lines.append(line)
    return lines
