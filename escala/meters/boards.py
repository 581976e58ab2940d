"""The meter over boards that a driver's library lists; what is asked of each is the driver's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar, final

from escala.meters.base import Bench, Channel, PowerMeter, Sample

B = TypeVar("B")
Part = tuple[Channel, B | None]
"""A channel and its board; None where it is a device that is none of the boards, for the channel's reason."""


@final
class Boards(PowerMeter, Generic[B]):
    """Each of `parts` by `sample`, but those that an earlier meter reads; `end` gives the library back."""

    def __init__(
        self,
        parts: Sequence[Part[B]],
        bench: Bench,
        sample: Callable[[Channel, B], Sample],
        end: Callable[[], None],
    ) -> None:
        self._parts = tuple(part for part in parts if part[0].where not in bench.covered)
        self._sample = sample
        self._end = end

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(channel for channel, _ in self._parts)

    def read(self) -> tuple[Sample, ...]:
        return tuple(
            Sample(reason=channel.reason)
            if board is None or channel.reason is not None
            else self._sample(channel, board)
            for channel, board in self._parts
        )

    def close(self) -> None:
        self._end()


def unmatched(without: Mapping[str, str]) -> list[Part[B]]:
    """Devices that are none of the boards, with the reason why."""
    return [(Channel(key, "device", reason=reason), None) for key, reason in without.items()]
