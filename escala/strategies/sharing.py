"""How seats that each hold a part make a whole of it: of states, and of the norm of all gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import nn

from escala.strategies.base import State


def _same(state: State) -> State:
    return state


@dataclass(frozen=True)
class Sharing:
    """What a learner must know of its peers' parts; as it stands: nothing, since it holds all itself.

    `whole` makes of a seat's snapshot the state of the whole network, on rank 0, while all seats call it; `part` the
    reverse, alone. `clip` makes the norm of all gradients no larger than a number. `together`: seats exchange
    something in a pass without gradients, too. `partners` seats, this one included, see the same rows and so gather
    the same running statistics.
    """

    whole: Callable[[State], State] = _same
    part: Callable[[State], State] = _same
    clip: Callable[[Sequence[nn.Parameter], float], object] = nn.utils.clip_grad_norm_
    together: bool = False
    partners: int = 1
