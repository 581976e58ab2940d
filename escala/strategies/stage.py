"""The learner of one seat of a pipeline: some stages of the network, and rows that pass them in microbatches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, final

import torch
import torch.distributed as dist
from torch import Tensor, nn

from escala.execution.batchnorm import combine_running_statistics
from escala.execution.compiled import compiled_call
from escala.execution.feed import Batch
from escala.execution.piece import Piece
from escala.execution.precision import autocast
from escala.execution.stepping import Stepper
from escala.strategies.arrival import Arrivals
from escala.strategies.base import State
from escala.strategies.line import Groups, Line, add_up_gradients
from escala.strategies.parts import tensors_of
from escala.strategies.relay import Awaited, Form, Relay, carried_of
from escala.strategies.sharing import Sharing
from escala.strategies.snapshot import put_back, snapshot_of
from escala.strategies.stepwise import stepwise
from escala.strategies.timetable import Act, timetable
from escala.terms.experiment import ExecutionSpec
from escala.workloads.base import Workload


@dataclass(frozen=True)
class Held:
    """What a seat holds: `core` under the person's names, its stages as they train and as they judge, by number.

    `shapes` are those of the whole network.
    """

    core: nn.Module
    trained: Mapping[int, nn.Module]
    judged: Mapping[int, nn.Module]
    shapes: dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Rows:
    """How the rows of a step become microbatches.

    `cut` gives the microbatches of so many rows, `first_row` this replica's first row in a global batch of so many;
    `piece` is told of each way forward, if any layer asks, and `watch` is held around it and its way back.
    """

    cut: Callable[[int], Sequence[slice]]
    first_row: Callable[[int], int]
    piece: Piece | None
    watch: Callable[[], AbstractContextManager[object]]


class _Step:
    """What one step has on the way; gone when it ends."""

    def __init__(self, inputs: Tensor, targets: Tensor, count: int, size: int, cuts: Sequence[slice]) -> None:
        self.inputs, self.targets, self.count, self.size, self.cuts = inputs, targets, count, size, cuts
        self.coming = dict[tuple[str, int, int], Any]()
        self.made = dict[tuple[int, int], tuple[Arrivals, Form | None, Sequence[Tensor]]]()
        self.sent = dict[tuple[int, int], Form]()
        self.back = dict[tuple[int, int], tuple[Form, list[Tensor]]]()
        self.losses = list[Tensor]()
        self.passes = 0


@final
class StageLearner:
    """As `Learner`, for one seat of a pipeline. Its last seat knows losses and outputs, the others None."""

    together = True
    replays = None

    def __init__(
        self,
        workload: Workload,
        held: Held,
        line: Line,
        groups: Groups,
        rows: Rows,
        stepper: Stepper,
        sharing: Sharing,
        execution: ExecutionSpec,
        device: torch.device,
    ) -> None:
        self.core = held.core
        self._workload = workload
        self._loss: Callable[[Tensor, Tensor], Tensor] = workload.loss
        self._held = held
        self._line = line
        self._groups = groups
        self._rows = rows
        self._stepper = stepper
        self._sharing = sharing
        self._execution = execution
        self._device = device
        self._relay = Relay(device, groups.ahead, groups.back)

    def step(self, inputs: Tensor, targets: Tensor, count: int, size: int) -> Tensor | None:
        """As `Learner.step`; all seats of a pipeline are given the same rows."""
        self._turn_to(training=True)
        for parameter in self._stepper.parameters:
            parameter.grad = None
        line = self._line
        now = _Step(inputs, targets, count, size, self._rows.cut(len(inputs)))
        do = {
            ("receive", "forward"): self._receive,
            ("compute", "forward"): self._forward,
            ("send", "forward"): self._send,
            ("receive", "backward"): self._receive_back,
            ("compute", "backward"): self._backward,
            ("send", "backward"): self._send_back,
        }
        for act in timetable(line.schedule, line.seats, line.chunks, len(now.cuts))[line.place]:
            do[act.verb, act.way](now, act)
        self._relay.finish()
        add_up_gradients(self._stepper.parameters, self._groups, detect=self._execution.unused == "detect")
        self._stepper.take()
        if not now.losses:
            return None
        loss = torch.stack(now.losses).sum()
        return loss if count else torch.zeros_like(loss)

    def steps(
        self, batches: Iterator[Batch], mark: Callable[[int], None], first: int
    ) -> tuple[Sequence[Tensor | None], Sequence[int]]:
        """As `Learner.steps`."""
        return stepwise(self.step, batches, mark, first)

    def compile_around(self) -> None:
        """As `Learner.compile_around`: the loss, in the last stage."""
        self._loss = compiled_call(self._loss, self._workload)

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
                with autocast(self._execution.precision, self._device):
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
            for stage in self._held.trained.values():
                stage.train(training)

    def _receive(self, now: _Step, act: Act) -> None:
        key = (act.stage, now.inputs[now.cuts[act.microbatch]].shape, "training")
        found = self._relay.receive(self._line.rank_of(act.stage - 1), key)
        now.coming["forward", act.stage, act.microbatch] = found

    def _forward(self, now: _Step, act: Act) -> None:
        cut = now.cuts[act.microbatch]
        rows = now.inputs[cut]
        arrivals = Arrivals()
        given: Any = rows
        form: Form | None = None
        if act.stage > 0:
            coming: Awaited
            form, coming = now.coming.pop(("forward", act.stage, act.microbatch))
            pairs = zip(form.kinds, coming.wait(), strict=True)
            given = carried_of(form, [arrivals.begin(one, learns=kind.learns) for kind, one in pairs])
        if self._rows.piece is not None:
            made = self._stepper.taken + self._stepper.skipped
            start = self._rows.first_row(now.size) + cut.start
            first = now.passes == 0
            self._rows.piece.begin(len(rows) if now.count else 0, now.size, first=first, start=start, at=made)
        now.passes += 1
        with self._rows.watch(), autocast(self._execution.precision, self._device):
            outputs = self._held.trained[act.stage](given)
            if act.stage + 1 == self._line.stages:
                outputs = self._loss(outputs, now.targets[cut])
                now.losses.append(outputs.detach())
        now.made[act.stage, act.microbatch] = (arrivals, form, tensors_of(outputs))
        if act.stage + 1 < self._line.stages:
            # As given: whether it was a tuple is told to the next stage.
            now.coming["made", act.stage, act.microbatch] = outputs

    def _send(self, now: _Step, act: Act) -> None:
        key = (act.stage + 1, now.inputs[now.cuts[act.microbatch]].shape, "training")
        outputs = now.coming.pop(("made", act.stage, act.microbatch))
        now.sent[act.stage, act.microbatch] = self._relay.send(outputs, self._line.rank_of(act.stage + 1), key)

    def _receive_back(self, now: _Step, act: Act) -> None:
        form = now.sent[act.stage, act.microbatch]
        coming = self._relay.receive_back(form, self._line.rank_of(act.stage + 1))
        now.coming["backward", act.stage, act.microbatch] = coming

    def _backward(self, now: _Step, act: Act) -> None:
        arrivals, form, made = now.made.pop((act.stage, act.microbatch))
        if act.stage + 1 == self._line.stages:
            gradients = [torch.full_like(made[0], 1 / now.count if now.count else 0.0)]
        else:
            gradients = now.coming.pop(("backward", act.stage, act.microbatch)).wait()
            now.sent.pop((act.stage, act.microbatch))
        learned = [one for one in made if one.requires_grad]
        if learned:
            with self._rows.watch():
                torch.autograd.backward(learned, gradients)
        if form is not None:
            places = [place for place, kind in enumerate(form.kinds) if kind.learns]
            now.back[act.stage, act.microbatch] = (form, arrivals.gradients(places))

    def _send_back(self, now: _Step, act: Act) -> None:
        form, gradients = now.back.pop((act.stage, act.microbatch))
        self._relay.send_back(form, gradients, self._line.rank_of(act.stage - 1))

    def _over_replicas(self, numbers: Tensor) -> Tensor:
        if self._groups.alike is not None:
            dist.all_reduce(numbers, group=self._groups.alike)
        return numbers
