"""Waiting for a device: the one hook by which a clock may be read around queued work."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch


def synchroniser(devices: Sequence[torch.device]) -> Callable[[], None]:
    """A function that returns once all work queued on these devices has ended."""
    accelerators = [device for device in devices if device.type != "cpu"]
    if not accelerators:
        return _nothing
    if len(accelerators) == 1 and accelerators[0].type == "cuda":
        only = accelerators[0]
        return lambda: torch.cuda.synchronize(only)

    def wait() -> None:
        for device in accelerators:
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            elif device.type == "mps":
                torch.mps.synchronize()
            else:
                torch.xpu.synchronize(device)

    return wait


def _nothing() -> None:
    """Work on the CPU has ended when its call returns."""
