"""Initial weights for networks that are only looked at: drawn in part, and repeated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

BLOCK = 2**20
"""Numbers that are drawn for a tensor of more; the rest of it repeats them."""

_DRAWS = (torch.ops.aten.normal_.default, torch.ops.aten.uniform_.default)


class QuickDraws(TorchDispatchMode):
    """Within it large tensors are filled as fast as memory is written, and not number by number.

    Distributions stay what they are, and no two elements of a block are alike. A thousand million weights take
    seconds in place of half a minute.
    """

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        if func in _DRAWS and args[0].numel() > BLOCK and _dense(args[0]):
            return _filled(args[0], lambda block: func(block, *args[1:], **(kwargs or {})))
        return func(*args, **(kwargs or {}))


def _filled(drawn: Tensor, draw: Callable[[Tensor], object]) -> Tensor:
    row = drawn.as_strided((drawn.numel(),), (1,))
    block, whole = row[:BLOCK], len(row) // BLOCK * BLOCK
    draw(block)
    row[:whole].view(-1, BLOCK)[1:] = block
    row[whole:] = block[: len(row) - whole]
    return drawn


def _dense(tensor: Tensor) -> bool:
    return tensor.device.type == "cpu" and tensor.is_contiguous()
