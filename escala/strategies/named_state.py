"""An optimiser's state under the names of its parameters, which any strategy can take over.

PyTorch numbers parameters in the order in which the optimiser was given them; another wrapper, or another order of
construction, gives the same number to another parameter.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from escala.store.checkpoint import check_keys
from escala.terms.errors import EscalaError

State = dict[str, Any]

_KERNELS = ("foreach", "fused", "capturable", "differentiable")


def named_state(optimizer: torch.optim.Optimizer, core: nn.Module) -> State:
    """`state`: parameter's name -> its values; `groups`: settings and names of each group. Tensors are not copied."""
    names = _names(optimizer, core)
    state = optimizer.state_dict()
    return {
        "state": {names[number]: values for number, values in state["state"].items()},
        "groups": [
            {**group, **_rate(group), "params": [names[number] for number in group["params"]]}
            for group in state["param_groups"]
        ],
    }


def load_named_state(optimizer: torch.optim.Optimizer, core: nn.Module, state: State) -> None:
    """Take over what `named_state` gave. Raises CKPT-KEYS where parameters or groups are others."""
    names = _names(optimizer, core)
    numbers = {name: number for number, name in enumerate(names)}
    groups = optimizer.state_dict()["param_groups"]
    own = [[names[number] for number in group["params"]] for group in groups]
    # By which kernels an optimiser works is this run's own choice, and none of the one that left the checkpoint.
    kernels = [{key: group[key] for key in _KERNELS if key in group} for group in groups]
    saved = [group["params"] for group in state["groups"]]
    given = dict.fromkeys([name for group in saved for name in group] + list(state["state"]), ())
    check_keys(dict.fromkeys(names, ()), given, "optimiser")
    if [set(group) for group in own] != [set(group) for group in saved]:
        raise EscalaError("CKPT-KEYS", "optimiser", "its parameters are grouped in another way")
    optimizer.load_state_dict(
        {
            "state": {numbers[name]: values for name, values in state["state"].items()},
            "param_groups": [
                {**group, **chosen, "params": [numbers[name] for name in mine]}
                for group, chosen, mine in zip(state["groups"], kernels, own, strict=True)
            ],
        }
    )


@contextmanager
def same_storages(optimizer: torch.optim.Optimizer) -> Iterator[None]:
    """Has a state that is loaded inside copied to where the old one lies, whose addresses recorded steps hold.

    What the loaded state lacks, as that of an optimiser before its first step does, becomes 0.
    """
    before = {parameter: dict(values) for parameter, values in optimizer.state.items()}
    rates = [group.get("lr") for group in optimizer.param_groups]
    yield
    for parameter, values in before.items():
        loaded = optimizer.state[parameter]
        for name, old in values.items():
            if not isinstance(old, Tensor):
                continue
            with torch.no_grad():
                if name in loaded:
                    old.copy_(loaded[name])
                else:
                    old.zero_()
            loaded[name] = old
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if isinstance(rate, Tensor):
            group["lr"] = rate


def _rate(group: dict[str, Any]) -> dict[str, float]:
    """The learning rate as a number, where it lies on the device: that is this run's own choice."""
    return {"lr": float(group["lr"])} if isinstance(group.get("lr"), Tensor) else {}


def _names(optimizer: torch.optim.Optimizer, core: nn.Module) -> list[str]:
    """Names by PyTorch's number. A parameter under several names goes by the first."""
    known = {id(parameter): name for name, parameter in core.named_parameters()}
    return [known[id(parameter)] for group in optimizer.param_groups for parameter in group["params"]]
