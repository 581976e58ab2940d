"""What a strategy is: who sits where and sees which rows, and how gradients meet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from escala.terms.experiment import ExecutionSpec, StrategyOptions, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torch import Tensor, nn

    from escala.execution.feed import Batch
    from escala.execution.replay import Replays
    from escala.workloads.base import Workload


PLAIN = ExecutionSpec()
USUAL = StrategyOptions()

State = dict[str, Any]


class Learner(Protocol):
    """What one seat trains and judges with. All seats of a trial call the same methods in the same order.

    `together`: seats exchange something in `predict`, so that all of them must call it equally often.
    """

    together: bool

    @property
    def replays(self) -> Replays | None:
        """The graphs by which it makes steps, with `execution.capture`."""

    @property
    def core(self) -> nn.Module:
        """What this seat holds of the person's own network, under the person's own names."""

    def step(self, inputs: Tensor, targets: Tensor, count: int, size: int) -> Tensor | None:
        """One optimiser step on this seat's rows; the SUM of their losses (0-d, on the device, not waited for).

        `count` is the global denominator; 0 adds nothing from this seat. Over the seats that tell, the sums divided
        by `count` add up to the mean loss of the global batch of `size` rows. None: the loss lies in another seat.
        """

    def steps(
        self, batches: Iterator[Batch], mark: Callable[[int], None], first: int
    ) -> tuple[Sequence[Tensor | None], Sequence[int]]:
        """A step on each batch: what `step` returns of each, or several in one tensor, and all counts.

        `mark` is called with the number, from `first` + 1, of each step that was queued, or of the last of several.
        """

    def compile_around(self) -> None:
        """Compile, too, what a step does before and after the network: as `execution.compile` says, from now on."""

    def predict(self, inputs: Tensor) -> Tensor | None:
        """Outputs in evaluation mode, without gradients. None: they lie in another seat."""

    def settle(self, share: float, add_up: Callable[[Tensor], Tensor]) -> None:
        """Before judging: one network of what seats gathered apart.

        `share` is this seat's part of the rows; those of all seats add up to 1. `add_up` returns the sum over seats
        of a float64 tensor in host memory.
        """

    def state(self) -> State:
        """The whole state under the person's own names, the same for any strategy; only rank 0's answer counts.

        `model`, `optimizer` as `named_state` gives it, and `progress`. Seats may exchange what they hold.
        """

    def load(self, state: State) -> None:
        """Take over a whole state, of any strategy; names and shapes must match exactly."""

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Names and whole shapes of what `state` gives as `model`, without any exchange."""

    def snapshot(self) -> State:
        """A copy of what this seat holds, for `restore` of this very learner alone, without any exchange."""

    def restore(self, snapshot: State) -> None:
        """Be again as at `snapshot`."""

    def held_bytes(self) -> dict[str, int]:
        """By device, what this seat keeps between steps: weights, buffers, gradients and the optimiser's state."""

    @property
    def outside_bytes(self) -> int:
        """On its device, what it holds beside what the device's allocator counts."""

    def plan_for(self, total_steps: int) -> None:
        """Lay the learning-rate schedule over so many optimiser steps."""

    def wait_at_most(self, seconds: float) -> None:
        """How long to wait for another seat, where the exchange is not the process group's."""

    @property
    def skipped(self) -> int | None:
        """Optimiser steps that loss scaling left out; None where losses are not scaled."""


@dataclass(frozen=True)
class Strategy(ABC):
    """A way to share the work. `seats` is arithmetic and is called in a process without torch."""

    grouped: ClassVar[bool] = False
    """Whether its seats need torch's process group, even where there is only one."""
    takes: ClassVar[tuple[str, ...]] = ()
    """Names of the options in `StrategyOptions` that mean something here."""

    ways: int
    device: str
    simulate: bool = False
    options: StrategyOptions = USUAL

    @property
    @abstractmethod
    def shares(self) -> int:
        """Into how many parts the rows of a global batch are divided, 1 or more; 1 where `ways` cannot be divided."""

    @property
    def stages(self) -> int:
        """Into how many consecutive stages the network is cut; 1: not at all."""
        return 1

    @abstractmethod
    def seats(self, host: Host, batch: int, execution: ExecutionSpec = PLAIN) -> tuple[Seat, ...]:
        """Who sits where and which rows of a global batch of `batch` each seat sees. Raises `Unfit(reason)`.

        `execution` may ask for what the strategy cannot do, or for rows that stay together.
        """

    def decide(
        self,
        workload: Workload,
        model: nn.Module,
        seat: Seat,
        execution: ExecutionSpec,
        sample: Callable[[int], tuple[Tensor, Tensor]],
    ) -> tuple[Strategy, dict[str, str]]:
        """This strategy with what only a look at network and rows decides, and what to record of it.

        Called once before `build`, on all seats together, which must come to the same answer. `model` is the network
        in host memory; `sample` gives inputs and targets of so many rows, on the seat's device. Raises
        `Unfit(reason)`.
        """
        del workload, model, seat, execution, sample
        return self, {}

    @abstractmethod
    def build(
        self, workload: Workload, model: nn.Module, seat: Seat, train: TrainSpec, execution: ExecutionSpec
    ) -> Learner:
        """The learner of one seat, in that seat's process. A process group exists if there are several seats."""
