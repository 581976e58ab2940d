"""Queues of work on a device, beside the one that computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

import torch


class Lane(Protocol):
    """A queue of work on a device, beside the current one."""

    def begin(self) -> AbstractContextManager[object]:
        """What is done within goes to this queue, after all that the current one was given before."""

    def joined(self) -> Callable[[], None]:
        """To be called later: what the current queue is then given comes after what this one has now."""


class _Stream:
    def __init__(self, device: torch.device, priority: int) -> None:
        self._stream = torch.cuda.Stream(device, priority=priority)

    @contextmanager
    def begin(self) -> Iterator[None]:
        self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        with torch.cuda.stream(self._stream):
            yield

    def joined(self) -> Callable[[], None]:
        event = torch.cuda.Event()
        event.record(self._stream)
        return event.wait


class _Here:
    def begin(self) -> AbstractContextManager[object]:
        return nullcontext()

    def joined(self) -> Callable[[], None]:
        return lambda: None


HERE: Lane = _Here()
"""The current queue itself."""


def lanes(device: torch.device, many: int, *, ahead: bool = False) -> Sequence[Lane]:
    """So many queues, or `HERE` on a device that has but one; what waits in those `ahead` goes before other work."""
    return [_Stream(device, -1 if ahead else 0) for _ in range(many)] if device.type == "cuda" else [HERE]
