"""What a strategy is: who sits where and sees which rows, and how gradients meet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    from torch import nn

    from escala.strategies.learner import Learner
    from escala.workloads.base import Workload


PLAIN = ExecutionSpec()


@dataclass(frozen=True)
class Strategy(ABC):
    """A way to share the work. `seats` is arithmetic and is called in a process without torch."""

    grouped: ClassVar[bool] = False
    """Whether its seats need torch's process group, even where there is only one."""

    ways: int
    device: str
    simulate: bool = False

    @abstractmethod
    def seats(self, host: Host, batch: int, execution: ExecutionSpec = PLAIN) -> tuple[Seat, ...]:
        """Who sits where and which rows of a global batch of `batch` each seat sees. Raises `Unfit(reason)`.

        `execution` may ask for what the strategy cannot do, or for rows that stay together.
        """

    @abstractmethod
    def build(
        self, workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec
    ) -> Learner:
        """The learner of one seat, in that seat's process. A process group exists if there are several seats."""
