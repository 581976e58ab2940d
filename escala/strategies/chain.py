"""A network whose consecutive parts lie on different devices of one process."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from escala.strategies.balance import spans
from escala.strategies.parts import Carried, check_buffers, parts_of, tensors_of
from escala.workloads.base import Workload


def spread(workload: Workload, model: nn.Module, split: Sequence[int], devices: Sequence[torch.device]) -> nn.Module:
    """The model with `split` consecutive parts on each of `devices`. What several stages share lies with the first.

    Raises `Unfit` where they share what changes in the way forward.
    """
    parts = parts_of(workload, model)
    check_buffers([(parts[number], stage) for stage, span in enumerate(spans(split)) for number in span])
    # From the last to the first, who so has the last word.
    for span, device in reversed(list(zip(spans(split), devices, strict=True))):
        for number in span:
            parts[number].module.to(device)
    return model


class Chain(nn.Module):
    """The way forward through a spread model: inputs on the first device -> outputs on the last one.

    In evaluation they come back to the first one, where the targets are.
    """

    def __init__(
        self, workload: Workload, core: nn.Module, split: Sequence[int], devices: Sequence[torch.device]
    ) -> None:
        super().__init__()
        self.core = core
        self._devices = tuple(devices)
        parts = parts_of(workload, core)
        # In a tuple they are not registered a second time.
        self._stages = tuple(nn.Sequential(*(parts[number].module for number in span)) for span in spans(split))
        self._foreign = tuple(
            {name: weight for name, weight in stage.named_parameters() if weight.device != device}
            for stage, device in zip(self._stages, devices, strict=True)
        )

    def forward(self, inputs: Tensor) -> Carried:
        """As the network's own."""
        carried: Carried = inputs
        for stage, foreign, device in zip(self._stages, self._foreign, self._devices, strict=True):
            carried = _moved(carried, device)
            # A weight that an earlier stage holds comes along, and its gradient goes back the same way.
            here = {name: weight.to(device, non_blocking=True) for name, weight in foreign.items()}
            carried = functional_call(stage, here, (carried,)) if here else stage(carried)
        return carried if self.training else _moved(carried, self._devices[0])


def _moved(carried: Carried, device: torch.device) -> Carried:
    moved = tuple(one.to(device, non_blocking=True) for one in tensors_of(carried))
    return moved[0] if isinstance(carried, Tensor) else moved
