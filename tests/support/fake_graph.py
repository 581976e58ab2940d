"""A graph of work on a processor, as faithful as one can be: what was recorded runs again without its Python code.

While `record` runs the work every operation of torch is noted with the tensors that it took and gave. Afterwards all
that it wrote is put back, since a recording computes nothing. A replay runs the noted operations on the same
storages: numbers of the host that found their way into one stay what they were. What reads a value on the host is
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

READ_ON_HOST = ("aten::_local_scalar_dense", "aten::nonzero")
SUMS = ("c10d::allreduce_", "c10d::allreduce_coalesced_")
Noted = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any], Any]


class FakeRecorder:
    """A `Recorder` for tensors in host memory; `recorded` counts its graphs."""

    def __init__(self) -> None:
        self.recorded = 0
        self.replayed = 0

    def aside(self) -> AbstractContextManager[object]:
        return nullcontext()

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        drawn = torch.get_rng_state()
        mode = _Noting()
        try:
            with mode:
                work()
        finally:
            mode.put_back()
        if mode.drew:
            # Only what the host drew for itself may be seen to have moved.
            torch.set_rng_state(drawn)
        self.recorded += 1

        def replay() -> None:
            self.replayed += 1
            with torch.no_grad():
                for noted in mode.noted:
                    _again(*noted)

        return replay


class _Noting(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.noted = list[Noted]()
        self.drew = False
        self._before = dict[int, tuple[Tensor, Tensor]]()
        self._new = set[int]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func._schema.name
        if name in READ_ON_HOST:
            raise RuntimeError(f"operation not permitted when stream is capturing: {name}")
        self.drew = self.drew or torch.Tag.nondeterministic_seeded in func.tags
        for tensor in _written(func, args, kwargs):
            self._keep(tensor)
        given = func(*args, **kwargs)
        self.noted.append((func, args, kwargs, given))
        for tensor in tree_leaves(given):
            if isinstance(tensor, Tensor) and not _is_view(func):
                self._new.add(_storage(tensor))
        return given

    def put_back(self) -> None:
        with torch.no_grad():
            for whole, value in self._before.values():
                whole.copy_(value)

    def _keep(self, tensor: Tensor) -> None:
        place = _storage(tensor)
        if place not in self._before and place not in self._new:
            whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
            self._before[place] = (whole, whole.clone())


def _again(func: Any, args: Any, kwargs: Any, given: Any) -> None:
    if func._schema.name in SUMS:
        for tensor in args[0]:
            dist.all_reduce(tensor)
        return
    if _is_view(func):
        return
    anew = func(*args, **kwargs)
    for old, new in zip(tree_leaves(given), tree_leaves(anew), strict=True):
        if isinstance(old, Tensor) and old.data_ptr() != new.data_ptr():
            old.copy_(new)


def _is_view(func: Any) -> bool:
    """Whether what it gives lies where what it took lies, and nothing is written."""
    returned = [one.alias_info for one in func._schema.returns]
    return any(info is not None and not info.is_write for info in returned)


def _written(func: Any, args: Any, kwargs: Any) -> Iterator[Tensor]:
    named = zip(func._schema.arguments, args, strict=False)
    later = ((one, kwargs[one.name]) for one in func._schema.arguments if one.name in kwargs)
    if func._schema.name in SUMS:
        yield from args[0]
    for argument, value in (*named, *later):
        if argument.alias_info is not None and argument.alias_info.is_write:
            yield from (tensor for tensor in tree_leaves(value) if isinstance(tensor, Tensor))


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata
