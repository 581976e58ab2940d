"""Torch's random generators of a seat: the host's, and its device's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def generator_states(device: torch.device) -> list[Tensor]:
    """Copies of the states of the host's generator and of the device's, if that is another."""
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state(*_argument(device)))
    return states


def set_generator_states(device: torch.device, states: Sequence[Tensor]) -> None:
    """Put back what `generator_states` gave for this device."""
    torch.set_rng_state(states[0])
    if device.type != "cpu":
        torch.get_device_module(device).set_rng_state(states[1], *_argument(device))


def _argument(device: torch.device) -> tuple[Any, ...]:
    # There is only one device of Apple's, and its module takes no argument for it.
    return () if device.type == "mps" else (device,)
