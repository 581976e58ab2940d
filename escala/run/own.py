"""What each seat has of its own: the states of its random generators, and statistics of the rows that it saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

# Keeps the random numbers of dropout apart between seats; any odd number far above the number of seats would do.
_SEED_STRIDE = 1_000_003
_STEP_STRIDE = 7_919


def draw_anew(seed: int, rank: int, step: int = 0) -> None:
    """Seed this seat's random numbers: others than its peers', and than those it drew before `step`."""
    torch.manual_seed(seed + _SEED_STRIDE * (rank + 1) + _STEP_STRIDE * step)


def own_state(model: nn.Module, devices: Sequence[str]) -> dict[str, Tensor]:
    """A copy, by name: torch's generators of the host and of each device, and running means and variances."""
    found = {"random host": torch.get_rng_state()}
    for place, device in enumerate(_accelerators(devices)):
        found[f"random device {place}"] = _module(device).get_rng_state(*_argument(device)).cpu()
    return found | {f"buffer {name}": value.detach().clone() for name, value in _statistics(model).items()}


def take_own_state(model: nn.Module, state: Mapping[str, Tensor], devices: Sequence[str]) -> None:
    """Take over what `own_state` gave on as many devices; of another kind of device only what fits."""
    torch.set_rng_state(state["random host"])
    for place, device in enumerate(_accelerators(devices)):
        if (kept := state.get(f"random device {place}")) is not None:
            _module(device).set_rng_state(kept, *_argument(device))
    with torch.no_grad():
        for name, value in _statistics(model).items():
            if (kept := state.get(f"buffer {name}")) is not None:
                value.copy_(kept)


def _statistics(model: nn.Module) -> dict[str, Tensor]:
    """Of torch's own layers alone: what `ghost` and `sync` gather is the same whenever seats put it together."""
    return {
        f"{name}.{kind}": value
        for name, layer in model.named_modules()
        if isinstance(layer, _BatchNorm)
        for kind, value in (("running_mean", layer.running_mean), ("running_var", layer.running_var))
        if value is not None
    }


def _accelerators(devices: Sequence[str]) -> list[torch.device]:
    return [torch.device(name) for name in devices if not name.startswith("cpu")]


def _module(device: torch.device) -> Any:
    return torch.get_device_module(device)


def _argument(device: torch.device) -> tuple[torch.device, ...]:
    # There is only one device of Apple's, and its module takes no argument for it.
    return () if device.type == "mps" else (device,)
