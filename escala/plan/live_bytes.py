"""How many bytes of tensors live at once while something runs, on fake tensors as on real ones."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from escala.plan.convolution import workspace
from escala.plan.traces import TraceKey

Workspace = Callable[[Callable[..., Any], Any, Any], int]
"""From an operation, its arguments and what it made: bytes."""


class LiveBytes(TorchDispatchMode):
    """Within it every new storage is counted until it is freed; those of `known` tensors never are.

    `now` and `peak` are bytes; `mark` begins the peak anew. `peak_beside` is the most beside the storages that were
    set `apart`, which are `set_apart` bytes. `workspace` tells what an operation takes for itself while it runs.
    """

    def __init__(self, known: Iterable[Tensor], workspace: Workspace | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = self.peak = self.peak_beside = self.set_apart = 0
        self._workspace = workspace
        self._sizes = dict[int, int]()
        self._known = {id(storage): storage for storage in (value.untyped_storage() for value in known)}

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run the operation and count what it made."""
        made = func(*args, **(kwargs or {}))
        for value in tree_leaves(made):
            if isinstance(value, Tensor):
                self._count(value)
        if self._workspace is not None and (taken := self._workspace(func, args, made)):
            self._rise(self.now + taken)
        return made

    def mark(self) -> None:
        """Forget higher peaks than what lives now."""
        self.peak, self.peak_beside = self.now, self.now - self.set_apart

    @contextmanager
    def gradients_apart(self, weights: Iterable[Tensor]) -> Iterator[None]:
        """Within it gradients that these weights get are set apart as they come."""

        def note(weight: Tensor) -> None:
            assert weight.grad is not None
            self.apart(weight.grad)

        hooks = [weight.register_post_accumulate_grad_hook(note) for weight in weights if weight.requires_grad]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def apart(self, value: Tensor) -> None:
        """Leave the storage of this tensor out of `peak_beside` from now on; it must not be freed within."""
        self.set_apart += self._sizes[id(value.untyped_storage())]

    def _count(self, value: Tensor) -> None:
        storage = value.untyped_storage()
        # A storage keeps its Python object, and so its id, for as long as it lives.
        number = id(storage)
        if number in self._known or number in self._sizes:
            return
        self._sizes[number] = storage.nbytes()
        self.now += storage.nbytes()
        self._rise(self.now)
        weakref.finalize(storage, self._free, number)

    def _rise(self, height: int) -> None:
        self.peak = max(self.peak, height)
        self.peak_beside = max(self.peak_beside, height - self.set_apart)

    def _free(self, number: int) -> None:
        self.now -= self._sizes.pop(number, 0)


def bytes_of(values: Iterable[Tensor]) -> int:
    """Of the storages behind these tensors, each counted once."""
    found = [value.untyped_storage() for value in values]
    return sum({id(storage): storage.nbytes() for storage in found}.values())


def held_by(module: nn.Module) -> tuple[Tensor, ...]:
    """Its weights and buffers."""
    return *module.parameters(), *module.buffers()


def live_bytes(known: Iterable[Tensor], key: TraceKey) -> LiveBytes:
    """As on the kind of device that the key is for: with what an accelerator's convolutions take for themselves."""
    return LiveBytes(known, partial(workspace, key.precision) if key.fused else None)
