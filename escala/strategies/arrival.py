"""Where the autograd of one stage begins: tensors that came from elsewhere, and whose gradient goes back there."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class Arrivals:
    """Tensors that arrived for one way forward, and, after the way back, their gradients."""

    def __init__(self) -> None:
        self._found = dict[int, Tensor]()
        self._shown = list[Tensor]()

    def begin(self, tensor: Tensor, *, learns: bool) -> Tensor:
        """The tensor itself, the start of a graph where it `learns`.

        It is no leaf, which a layer that works in place could not take.
        """
        place = len(self._shown)
        self._shown.append(tensor.detach())
        if not learns:
            return tensor
        start = torch.empty(0, requires_grad=True)
        begun: Tensor = _Arrival.apply(tensor, start, self._found, place)  # type: ignore[no-untyped-call]
        return begun

    def gradients(self, places: list[int]) -> list[Tensor]:
        """Of the tensors at these places; zeros where nothing came back."""
        return [
            found if (found := self._found.get(place)) is not None else torch.zeros_like(self._shown[place])
            for place in places
        ]


class _Arrival(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, _: Tensor, found: dict[int, Tensor], place: int) -> Tensor:
        ctx.found, ctx.place = found, place
        ctx.mark_dirty(tensor)
        return tensor

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        (ctx.found[ctx.place],) = gradients
        return None, None, None, None
