"""Networks that misbehave at a chosen step, named `faulty:network` in experiments of the tests."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn


class Faulty(nn.Module):
    """A linear classifier. `fault` happens on the last seat at training step `step` (from 0) after warm-up.

    Warm-up ends with a state being loaded, so counting starts there and a network that was never loaded is sound.
    """

    def __init__(self, fault: str, step: int) -> None:
        super().__init__()
        self.layer = nn.Linear(784, 10)
        self._fault = fault
        self._step = step
        self._done: int | None = None

    def load_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        self._done = 0
        return super().load_state_dict(*args, **kwargs)

    def forward(self, images: Tensor) -> Tensor:
        outputs: Tensor = self.layer(images.flatten(1))
        if self._done is None or (dist.is_initialized() and dist.get_rank() < dist.get_world_size() - 1):
            return outputs
        if not self.training:
            if self._fault == "kill in evaluation":
                os.kill(os.getpid(), signal.SIGKILL)
            return outputs
        now = self._done == self._step
        self._done += 1
        return self._misbehave(outputs) if now else outputs

    def _misbehave(self, outputs: Tensor) -> Tensor:
        if self._fault == "raise":
            raise ValueError("planted in the network")
        if self._fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if self._fault == "kill in backward":
            outputs.register_hook(lambda _: os.kill(os.getpid(), signal.SIGKILL))
        if self._fault == "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        if self._fault == "leave":
            os._exit(0)
        if self._fault == "exit":
            sys.exit(0)
        if self._fault == "leave with 137":
            os._exit(137)
        if self._fault == "not finite":
            return outputs * float("nan")
        if self._fault == "too large":
            return outputs + torch.zeros(1 << 50, dtype=torch.float64)[:1]
        return outputs


def network(fault: str = "", step: int = 3) -> nn.Module:
    return Faulty(fault, step)


def of_another_kind() -> int:
    return 3


def unseeded() -> nn.Module:
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    with torch.no_grad():
        model[1].weight[0, 0] = int.from_bytes(os.urandom(2), "big")
    return model


def wandering(to: str = "/") -> nn.Module:
    print("words of the factory")
    os.chdir(to)
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))


def raising() -> nn.Module:
    raise KeyError("planted in the factory")
