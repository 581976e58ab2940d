"""What every meter is: something started, stopped and read."""

from __future__ import annotations

from abc import ABC, abstractmethod

from escala.terms.record import Reading


class Meter(ABC):
    """Reads one physical quantity between `start` and `stop`. Both raise `Unavailable(reason)`."""

    @abstractmethod
    def start(self) -> None:
        """Begin."""

    @abstractmethod
    def stop(self) -> tuple[Reading, ...]:
        """End, and what was read since `start`."""
