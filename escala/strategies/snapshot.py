"""What one seat holds of a training, copied and put back: weights, the optimiser's state, its progress."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from escala.execution.memory_format import lay_out_state
from escala.execution.stepping import Stepper
from escala.strategies.base import State
from escala.strategies.named_state import load_named_state, named_state


def snapshot_of(core: nn.Module, stepper: Stepper) -> State:
    """A copy, like `Learner.state`, of what lies in `core` and `stepper`."""
    return {
        "model": {name: value.detach().clone() for name, value in core.state_dict().items()},
        "optimizer": _copy(named_state(stepper.optimizer, core)),
        "progress": stepper.progress(),
    }


def put_back(core: nn.Module, stepper: Stepper, snapshot: State) -> None:
    """Be again as at `snapshot`. Raises CKPT-KEYS where names differ."""
    core.load_state_dict(snapshot["model"], strict=True)
    load_named_state(stepper.optimizer, core, _copy(snapshot["optimizer"]))
    lay_out_state(stepper.optimizer)
    stepper.resume(snapshot["progress"])


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
