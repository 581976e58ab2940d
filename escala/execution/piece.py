"""What layers are told of a forward pass in training: whose rows pass, and when."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn


@dataclass
class Piece:
    """What one forward pass in training holds; one object, shared by all layers of a network that ask.

    `rows` of the `of` rows of the optimiser step pass here, the first of them row `start` (from 0) of the global
    batch; 0 `rows`: what passes does not count and only keeps a seat in step with its peers. `step` and `number` tell
    steps and passes of this process apart; `at` is how many optimiser steps the training had made before this one, as
    int64 (0-d) on the device where steps are recorded.
    """

    rows: int = 0
    of: int = 1
    step: int = 0
    number: int = 0
    start: int = 0
    at: int | Tensor = 0
    again: bool = False
    """Whether a pass made before is made again on the way back, of which nothing is to be noted."""

    def begin(self, rows: int, of: int, *, first: bool = True, start: int = 0, at: int | Tensor = 0) -> None:
        """Before each forward pass in training; `first`: the first one of an optimiser step."""
        self.rows, self.of = rows, of
        self.start, self.at = start, at
        self.step += first
        self.number += 1


def exchange(model: nn.Module, make: Callable[[str, nn.Module], nn.Module | None]) -> tuple[nn.Module, bool]:
    """Put what `make(name, layer)` gives in the layer's place, under all its names; None leaves it.

    Returns the model, which is another one where it was itself such a layer, and whether there was any.
    """
    made = dict[nn.Module, nn.Module]()
    for name, layer in list(model.named_modules(remove_duplicate=False)):
        if layer not in made:
            new = make(name, layer)
            if new is None:
                continue
            made[layer] = new
        if not name:
            return made[layer], True
        parent, _, own = name.rpartition(".")
        setattr(model.get_submodule(parent), own, made[layer])
    return model, bool(made)
