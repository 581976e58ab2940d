"""The learner of one seat of a pipeline: some stages of the network, and rows that pass them in microbatches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
import torch.distributed as dist
from torch import Tensor, nn

from escala.execution.batchnorm import combine_running_statistics
from escala.execution.feed import Batch
from escala.execution.precision import autocast
from escala.execution.stepping import Stepper
from escala.strategies.base import State
from escala.strategies.held_bytes import held_bytes
from escala.strategies.line import Groups, add_up_gradients
from escala.strategies.passage import Crew, Load, Passage
from escala.strategies.relay import carried_of
from escala.strategies.sharing import Sharing
from escala.strategies.snapshot import put_back, snapshot_of
from escala.strategies.stepwise import stepwise
from escala.strategies.timetable import timetable


@dataclass(frozen=True)
class Held:
    """What a seat holds: `core` under the person's names, its stages as they judge, by number.

    `shapes` are those of the whole network.
    """

    core: nn.Module
    judged: Mapping[int, nn.Module]
    shapes: dict[str, tuple[int, ...]]


@final
class StageLearner:
    """As `Learner`, for one seat of a pipeline. Its last seat knows losses and outputs, the others None.

    `cut` gives the microbatches of so many rows, `first_row` this replica's first row in a global batch of so many;
    `detect`: weights may be without gradient.
    """

    together = True
    replays = None

    def __init__(
        self,
        held: Held,
        crew: Crew,
        groups: Groups,
        stepper: Stepper,
        sharing: Sharing,
        *,
        cut: Callable[[int], Sequence[slice]],
        first_row: Callable[[int], int],
        detect: bool,
    ) -> None:
        self.core = held.core
        self._held = held
        self._crew = crew
        self._line = crew.line
        self._relay = crew.relay
        self._groups = groups
        self._stepper = stepper
        self._sharing = sharing
        self._cut = cut
        self._first_row = first_row
        self._detect = detect

    def step(self, inputs: Tensor, targets: Tensor, count: int, size: int) -> Tensor | None:
        """As `Learner.step`; all seats of a pipeline are given the same rows."""
        self._turn_to(training=True)
        for parameter in self._stepper.parameters:
            parameter.grad = None
        line, stepper, cuts = self._line, self._stepper, self._cut(len(inputs))
        load = Load(inputs, targets, cuts, count, size, self._first_row(size), stepper.taken + stepper.skipped)
        passage = Passage(self._crew, load)
        passage.go(timetable(line.schedule, line.seats, line.chunks, len(cuts))[line.place])
        self._relay.finish()
        add_up_gradients(stepper.parameters, self._groups, detect=self._detect)
        stepper.take()
        if not passage.losses:
            return None
        loss = torch.stack(passage.losses).sum()
        return loss if count else torch.zeros_like(loss)

    def steps(
        self, batches: Iterator[Batch], mark: Callable[[int], None], first: int
    ) -> tuple[Sequence[Tensor | None], Sequence[int]]:
        """As `Learner.steps`."""
        return stepwise(self.step, batches, mark, first)

    def compile_around(self) -> None:
        """As `Learner.compile_around`; nothing here, where the loss is one small part of the last stage's work."""

    def predict(self, inputs: Tensor) -> Tensor | None:
        """As `Learner.predict`. A seat goes on to the next rows while those after it still have these."""
        self._turn_to(training=False)
        outputs: Any = None
        self._relay.finish()
        with torch.no_grad():
            for stage in self._line.own:
                given: Any = inputs
                if stage > 0:
                    form, coming = self._relay.receive(self._line.rank_of(stage - 1), (stage, inputs.shape))
                    given = carried_of(form, coming.wait())
                with autocast(self._crew.precision, self._crew.device):
                    outputs = self._held.judged[stage](given)
                if stage + 1 < self._line.stages:
                    self._relay.send(outputs, self._line.rank_of(stage + 1), (stage + 1, inputs.shape))
                    outputs = None
        return outputs  # type: ignore[no-any-return]

    def settle(self, share: float, add_up: Callable[[Tensor], Tensor]) -> None:
        """As `Learner.settle`, among the seats with the same stages; the others hold other statistics."""
        del add_up
        combine_running_statistics(self.core, share * self._line.seats, self._over_replicas)

    def state(self) -> State:
        """As `Learner.state`."""
        return self._sharing.whole(self.snapshot())

    def load(self, state: State) -> None:
        """As `Learner.load`."""
        self.restore(self._sharing.part(state))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """As `Learner.shapes`."""
        return dict(self._held.shapes)

    def snapshot(self) -> State:
        """As `Learner.snapshot`."""
        return snapshot_of(self.core, self._stepper)

    def restore(self, snapshot: State) -> None:
        """As `Learner.restore`."""
        put_back(self.core, self._stepper, snapshot)

    def held_bytes(self) -> dict[str, int]:
        """As `Learner.held_bytes`."""
        return held_bytes(self.core, self._stepper.optimizer)

    @property
    def outside_bytes(self) -> int:
        """As `Learner.outside_bytes`."""
        return 0

    def plan_for(self, total_steps: int) -> None:
        """As `Learner.plan_for`."""
        self._stepper.plan_for(total_steps)

    def wait_at_most(self, seconds: float) -> None:
        """All exchange is the process group's, which knows how long to wait."""

    @property
    def skipped(self) -> int | None:
        """None: losses are not scaled here."""
        return None

    def _turn_to(self, *, training: bool) -> None:
        if self.core.training is not training:
            self.core.train(training)
            for stage in self._crew.stages.values():
                stage.train(training)

    def _over_replicas(self, numbers: Tensor) -> Tensor:
        if self._groups.alike is not None:
            dist.all_reduce(numbers, group=self._groups.alike)
        return numbers
