"""Changes in place that would cut a sharded network's way back, found in its first pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from escala.terms.errors import EscalaError


def out_of_place(model: nn.Module) -> None:
    """Have PyTorch's own layers leave their inputs alone; numbers stay the same."""
    for layer in model.modules():
        if type(layer).__module__.startswith("torch.nn.") and getattr(layer, "inplace", False):
            layer.inplace = False  # type: ignore[assignment]


def watch_first_pass(model: nn.Module, parts: Mapping[str, nn.Module]) -> None:
    """Raise MODEL-INPLACE in the first pass with gradients in which what a part gave is changed in place.

    `fully_shard` gathers a part's weights again when the gradient of its output comes. Where the output is a view, a
    change in place takes that sign away, and gradients would be those of weights that are not there.
    """
    seen = list[tuple[str, Tensor, int]]()

    def note(name: str, outputs: Any) -> None:
        if isinstance(outputs, Tensor) and outputs.requires_grad and outputs._is_view():
            seen.append((name, outputs, outputs._version))

    def check(layer: nn.Module, inputs: Any, outputs: Any) -> None:
        del layer, inputs
        if not isinstance(outputs, Tensor) or not outputs.requires_grad:
            return
        for hook in hooks:
            hook.remove()
        changed = [name for name, view, version in seen if view._version != version]
        seen.clear()
        if changed:
            raise EscalaError(
                "MODEL-INPLACE",
                f"layer {changed[0]}",
                "what it gives is changed in place, which cuts the way back of a sharded network",
                expected="a new tensor: x = x + y, not x += y",
                next_step="change that line of the network, or use ddp or zero1",
            )

    def noting(name: str) -> Any:
        return lambda _layer, _inputs, outputs: note(name, outputs)

    hooks = [part.register_forward_hook(noting(name)) for name, part in parts.items()]
    hooks.append(model.register_forward_hook(check))
