"""The plain learner, and the one visible order in which any learner is put together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, final

import msgspec
import torch
from torch import Tensor, nn

from escala.execution.batchnorm import arrange, combine_running_statistics
from escala.execution.capture import Recorder, recorder_on
from escala.execution.checkpointing import checkpointed
from escala.execution.compiled import How, compiled, compiled_call
from escala.execution.dropout import draw_by_row, nothing_drawn
from escala.execution.dropout_kernel import with_dropout_kernel
from escala.execution.feed import Batch
from escala.execution.generators import generator_states, set_generator_states
from escala.execution.memory_format import laid_out
from escala.execution.optimizer_kernel import recordable, with_kernel
from escala.execution.piece import Piece
from escala.execution.precision import autocast, narrowed, parameter_type, set_flags
from escala.execution.replay import Replays
from escala.execution.schedule import full_rate, is_constant
from escala.execution.stepping import Arrived, Stepper
from escala.strategies.base import Learner, State
from escala.strategies.held_bytes import held_bytes
from escala.strategies.named_state import same_storages
from escala.strategies.seating import pieces, share_of
from escala.strategies.sharing import Sharing
from escala.strategies.snapshot import put_back, snapshot_of
from escala.terms.experiment import ExecutionSpec, Precision, TrainSpec
from escala.terms.trial import Seat
from escala.workloads.base import Workload

Complete = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Makes inputs and targets of what the feed gives."""
ALONE = Sharing()


class Exchange(Protocol):
    """Adds up the gradients of a step over the seats; waits `wait_s` seconds at most for another seat.

    Returns None where the sums are there, or the parts of the network as they come. `outside`: as
    `Learner.outside_bytes`.
    """

    wait_s: float
    outside: int

    def __call__(self) -> Iterator[Arrived] | None: ...


@final
class PlainLearner:
    """One seat's model and optimiser: the whole network, on rows of its own.

    `wrapped` is called in a training step and may exchange gradients; `core` is the person's own module, whose
    names a checkpoint uses. `averaged_over` is the number by which the wrapper divides the summed gradient. `hold`
    keeps the wrapper from exchanging gradients that another microbatch will add to; `exchange` adds them up over the
    seats where the wrapper does not. `piece` is told of every forward
    pass in training, if any layer asks; `first_row` gives, for a global batch of so many rows, the first of this
    seat's. `watch` is held around each pass and its way back. Microbatches are cut between blocks of `unit` rows;
    where seats exchange something in the passes themselves, all of them make `passes` in each step; with
    `aside`, those whose rows do not count are made as in judging. `device`, where it computes; left out, where its
    weights lie. `outputs_on`: the device of outputs in training, where it is another than that of the targets. With a
    `recorder` steps are recorded, `unroll` at a time (None: until that is settled, one), and replayed.
    """

    def __init__(
        self,
        workload: Workload,
        core: nn.Module,
        wrapped: nn.Module,
        stepper: Stepper,
        precision: Precision,
        *,
        averaged_over: int,
        evaluate_wrapped: bool,
        microbatch: int | None = None,
        hold: Callable[[], AbstractContextManager[object]] = nullcontext,
        exchange: Exchange | None = None,
        piece: Piece | None = None,
        first_row: Callable[[int], int] = lambda _: 0,
        watch: Callable[[], AbstractContextManager[object]] = nullcontext,
        unit: int = 1,
        passes: int = 1,
        aside: bool = False,
        sharing: Sharing = ALONE,
        device: torch.device | None = None,
        recorder: Recorder | None = None,
        unroll: int | None = 1,
        outputs_on: torch.device | None = None,
        compile: How = False,
    ) -> None:
        self.core = core
        self.together = sharing.together
        self._partners = sharing.partners
        self._whole = sharing.whole
        self._part = sharing.part
        self._workload = workload
        self._loss: Callable[[Tensor, Tensor], Tensor] = workload.loss
        self._wrapped = wrapped
        self._evaluated = wrapped if evaluate_wrapped else core
        self._stepper = stepper
        self._parameters = stepper.parameters
        self._microbatch = microbatch
        self._hold = hold
        self._exchange = exchange
        self._piece = piece
        self._first_row = first_row
        self._watch = watch
        self._unit = unit
        self._passes = passes
        self._aside = aside
        self._precision = precision
        self._averaged_over = averaged_over
        self._device = device or next(core.parameters()).device
        self._outputs_on = outputs_on
        self._compile = compile
        self._seeds: dict[int, Tensor] = {}
        self._recorder = recorder
        self._complete: Complete = _as_it_is
        self.replays: Replays | None = (
            Replays(recorder, unroll, self, parameter_type(precision)) if recorder else None
        )

    def steps(
        self, batches: Iterator[Batch], mark: Callable[[int], None] = lambda _: None, first: int = 0
    ) -> tuple[list[Tensor], list[int]]:
        """A step on each batch; returns this seat's sums of losses, 0-d or several in one, and all counts.

        `mark` is called with the number, from `first` + 1, of each step that was queued, or of the last of several.
        """
        if self.replays is not None:
            return self.replays.follow(batches, mark, first)
        losses, counts = list[Tensor](), list[int]()
        for number, (inputs, targets, count, size) in enumerate(batches, first + 1):
            losses.append(self._make(inputs, targets, count, size))
            counts.append(count)
            mark(number)
        return losses, counts

    def step(self, inputs: Tensor, targets: Tensor, count: int, size: int) -> Tensor:
        """One optimiser step, never a replayed one; returns this seat's SUM of losses (0-d, on the device).

        It is not waited for. `count` is the global denominator; 0 adds nothing from this seat. The seat's sum divided
        by `count` and added up over the seats is the mean loss of the global batch, and so is the gradient. `size` is
        the number of rows of the global batch.
        """
        if self._recorder is None:
            return self._make(inputs, targets, count, size)
        with self._recorder.aside():
            return self._make(*self._complete(inputs, targets), count, size)

    def record_step(self, inputs: Tensor, targets: Tensor, count: int, size: int, seed: Tensor) -> Tensor:
        """As `Recordable.record_step`."""
        return self._make(*self._complete(inputs, targets), count, size, seed)

    def _make(self, inputs: Tensor, targets: Tensor, count: int, size: int, seed: Tensor | None = None) -> Tensor:
        if not self.core.training:
            self._wrapped.train()
        # What `zero_grad` does, without its hooks for profilers: 10 microseconds a step, 1 % of a small network.
        for parameter in self._parameters:
            parameter.grad = None
        loss = self._gather(inputs, targets, count, size, seed)
        self._stepper.take(self._exchange() if self._exchange is not None else None)
        return loss if count else torch.zeros_like(loss)

    def _gather(self, inputs: Tensor, targets: Tensor, count: int, size: int, seed: Tensor | None) -> Tensor:
        """Gradients of these rows, a microbatch at a time; the sum of their losses."""
        most = self._microbatch
        start = self._first_row(size)
        if most is None or (len(inputs) <= most and self._passes == 1):
            return self._backward(inputs, targets, count, start, size, seed)
        cuts = pieces(len(inputs), most, self._unit)
        own = [(inputs[cut], targets[cut], count, start + cut.start) for cut in cuts]
        # Whoever has fewer rows in a short batch keeps its peers company with passes that do not count.
        *others, last = own + [(inputs[:1], targets[:1], 0, 0)] * (self._passes - len(own))
        with self._hold():
            losses = [self._backward(*part, size, seed, first=not number) for number, part in enumerate(others)]
        # Only now may gradients be exchanged: once a step, however many microbatches there are.
        losses.append(self._backward(*last, size, seed, first=not others))
        return torch.stack(losses[: len(own)]).sum()

    def _backward(
        self,
        inputs: Tensor,
        targets: Tensor,
        count: int,
        start: int,
        size: int,
        seed: Tensor | None,
        *,
        first: bool = True,
    ) -> Tensor:
        if self._piece is not None:
            at = self._stepper.made
            self._piece.begin(len(inputs) if count else 0, size, first=first, start=start, at=at)
        # Torch's own normalisation would take a row that does not count for one that does.
        quiet = self._aside and not count
        if quiet:
            self._wrapped.eval()
        if self._outputs_on is not None:
            targets = targets.to(self._outputs_on, non_blocking=True)
        with self._watch():
            with autocast(self._precision, self._device):
                loss = self._loss(self._wrapped(inputs), targets)
            # Dividing here would cost two kernels a step; the same factor as the seed of backward costs none.
            seed = self._seed_tensor(count, loss) if seed is None or not count else seed.to(loss.dtype)
            loss.backward(self._stepper.scaled(seed) if self._stepper.scales else seed)
        if quiet:
            self._wrapped.train()
        return loss.detach()

    def predict(self, inputs: Tensor) -> Tensor:
        """Outputs of the network in evaluation mode, without gradients."""
        if self.core.training:
            self._wrapped.eval()
        with torch.no_grad(), autocast(self._precision, self._device):
            return self._evaluated(inputs)  # type: ignore[no-any-return]

    def settle(self, share: float, add_up: Callable[[Tensor], Tensor]) -> None:
        """Before judging: one network of what seats gathered apart, as in `combine_running_statistics`."""
        combine_running_statistics(self.core, share, add_up, self._partners)

    def state(self) -> State:
        """As `Learner.state`; a copy."""
        return self._whole(self.snapshot())

    def load(self, state: State) -> None:
        """As `Learner.load`."""
        self.restore(self._part(state))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """As `Learner.shapes`."""
        return {name: tuple(value.shape) for name, value in self.core.state_dict().items()}

    def snapshot(self) -> State:
        """As `Learner.snapshot`: like a state, but of what this seat holds."""
        return snapshot_of(self.core, self._stepper)

    def restore(self, snapshot: State) -> None:
        """As `Learner.restore`."""
        with nullcontext() if self._recorder is None else same_storages(self._stepper.optimizer):
            put_back(self.core, self._stepper, snapshot)

    def hold(self) -> Callable[[], None]:
        """As `Recordable.hold`: weights, buffers, optimiser, counts of steps and random generators."""
        state = self.snapshot()
        buffers = [(buffer, buffer.detach().clone()) for buffer in self.core.buffers()]
        drawn = generator_states(self._device)

        def put_back() -> None:
            self.restore(state)
            with torch.no_grad():
                for buffer, value in buffers:
                    buffer.copy_(value)
            set_generator_states(self._device, drawn)

        return put_back

    def went(self, steps: int) -> None:
        """As `Recordable.went`."""
        self._stepper.went(steps)

    def finish_batches(self, complete: Complete) -> None:
        """From now on batches come as `complete` takes them, which is called within the step."""
        self._complete = complete

    def compile_around(self) -> None:
        """As `Learner.compile_around`."""
        self._loss = compiled_call(self._loss, self._compile, self._workload)
        if self._complete is not _as_it_is:
            self._complete = compiled_call(self._complete, self._compile, self._workload)

    def held_bytes(self) -> dict[str, int]:
        """As `Learner.held_bytes`."""
        return held_bytes(self.core, self._stepper.optimizer)

    @property
    def outside_bytes(self) -> int:
        """As `Learner.outside_bytes`."""
        return self._exchange.outside if self._exchange is not None else 0

    def plan_for(self, total_steps: int) -> None:
        """Lay the learning-rate schedule over so many optimiser steps."""
        self._stepper.plan_for(total_steps)
        if self.replays is not None:
            self.replays.forget()

    def wait_at_most(self, seconds: float) -> None:
        """How long to wait for another seat's gradients, where the exchange is not the process group's."""
        if self._exchange is not None:
            self._exchange.wait_s = seconds

    @property
    def skipped(self) -> int | None:
        """Optimiser steps that loss scaling left out; None where losses are not scaled."""
        return self._stepper.skipped if self._stepper.scales else None

    def seed_of(self, count: int) -> float:
        """As `Recordable.seed_of`."""
        return self._averaged_over / count if count else 0.0

    def _seed_tensor(self, count: int, loss: Tensor) -> Tensor:
        seed = self._seeds.get(count)
        if seed is None:
            seed = torch.full_like(loss, self.seed_of(count), requires_grad=False)
            self._seeds[count] = seed
        return seed


def assemble(
    workload: Workload,
    model: nn.Module,
    seat: Seat,
    train: TrainSpec,
    execution: ExecutionSpec,
    *,
    place: Callable[[nn.Module, torch.device], nn.Module] = lambda whole, device: whole.to(device),
    wrap: Callable[[nn.Module], nn.Module] = lambda placed: placed,
    averaged_over: int = 1,
    evaluate_wrapped: bool = False,
    hold: Callable[[nn.Module], AbstractContextManager[object]] = lambda _: nullcontext(),
    exchange: Callable[[nn.Module], Exchange] | None = None,
    sharing: Callable[[nn.Module, torch.optim.Optimizer], Sharing] | None = None,
    passes: int = 1,
    outputs_on: torch.device | None = None,
    regions: int = 1,
) -> Learner:
    """Place on the device -> memory format -> precision -> batch normalisation -> dropout -> activation
    checkpointing -> compile -> strategy's wrapper -> optimiser -> what of it is shared out -> capture.

    `train.seed` is the seed of this very run, which dropout by row goes by. `passes`: how many all seats make in each
    step, where the wrapper exchanges something in every one of them; `regions`: as in `compiled`.
    """
    device = torch.device(seat.devices[0])
    recorder = recorder_on(device) if execution.capture else None
    set_flags(execution.precision)
    placed = laid_out(place(model, device), execution.memory_format)
    placed = narrowed(placed.to(parameter_type(execution.precision)), execution.precision)
    placed, piece = arrange(placed, execution.batchnorm, execution.unit, seat.share)
    exchanging = piece is not None and execution.batchnorm == "sync"
    if execution.by_row:
        told = piece or Piece()
        placed, draws = draw_by_row(placed, train.seed, told)
        piece = told if draws else piece
    placed = with_dropout_kernel(placed, execution.dropout_kernel)
    placed = checkpointed(
        placed, workload.blocks(placed), execution.activation_checkpointing, piece, compile=bool(execution.compile)
    )
    # Inside the wrapper: through it torch does not come to the code of a network that is one of its own containers.
    with recorder.aside() if recorder else nullcontext():
        wrapped = wrap(compiled(placed, execution.compile, workload, regions))
    recipe = msgspec.structs.replace(train, lr=full_rate(train))
    optimizer = workload.optimizer(placed.parameters(), recipe)
    moving = not is_constant(train)
    if recorder:
        optimizer = recordable(optimizer, execution.optimizer_kernel, moving=moving)
    else:
        optimizer = with_kernel(optimizer, execution.optimizer_kernel)
    on_device = recorder is not None and (moving or piece is not None)
    shared = sharing(placed, optimizer) if sharing else ALONE
    return PlainLearner(
        workload,
        placed,
        wrapped,
        Stepper(optimizer, train, execution.precision, device, shared.clip, on_device=on_device),
        execution.precision,
        averaged_over=averaged_over,
        evaluate_wrapped=evaluate_wrapped,
        microbatch=execution.at_once,
        hold=lambda: hold(wrapped),
        exchange=exchange(placed) if exchange else None,
        piece=piece,
        first_row=lambda size: share_of(seat.rows, train.batch, size, execution.unit).start,
        watch=(lambda: nothing_drawn(placed, *map(torch.device, seat.devices))) if execution.by_row else nullcontext,
        unit=execution.unit,
        passes=max(passes, -(-seat.batch // (execution.at_once or seat.batch)) if exchanging else 1),
        aside=shared.together and execution.batchnorm == "local",
        sharing=shared,
        device=device,
        recorder=recorder,
        unroll=execution.unroll,
        outputs_on=outputs_on,
        compile=execution.compile,
    )


def _as_it_is(inputs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    return inputs, targets
