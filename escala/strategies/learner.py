"""The plain learner, and the one visible order in which any learner is put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from escala.execution.batchnorm import combine_running_statistics
from escala.execution.precision import autocast, parameter_type, set_flags
from escala.terms.experiment import ExecutionSpec, Precision, TrainSpec
from escala.terms.trial import Seat
from escala.workloads.base import Workload

State = dict[str, Any]


class Learner:
    """One seat's model and optimiser.

    `wrapped` is called in a training step and may exchange gradients; `core` is the person's own module, whose
    names a checkpoint uses. `averaged_over` is the number by which the wrapper divides the summed gradient.
    """

    def __init__(
        self,
        workload: Workload,
        core: nn.Module,
        wrapped: nn.Module,
        optimizer: torch.optim.Optimizer,
        precision: Precision,
        *,
        averaged_over: int,
        evaluate_wrapped: bool,
    ) -> None:
        self.core = core
        self._workload = workload
        self._wrapped = wrapped
        self._evaluated = wrapped if evaluate_wrapped else core
        self._optimizer = optimizer
        self._parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        self._precision = precision
        self._averaged_over = averaged_over
        self._device = next(core.parameters()).device
        self._seeds: dict[int, Tensor] = {}

    def step(self, inputs: Tensor, targets: Tensor, count: int) -> Tensor:
        """One optimiser step; returns this seat's SUM of losses (0-d, on the device, not waited for).

        `count` is the global denominator; 0 adds nothing from this seat. The seat's sum divided by `count` and added
        up over the seats is the mean loss of the global batch, and so is the gradient.
        """
        if not self.core.training:
            self._wrapped.train()
        # What `zero_grad` does, without its hooks for profilers: 10 microseconds a step, 1 % of a small network.
        for parameter in self._parameters:
            parameter.grad = None
        with autocast(self._precision, self._device):
            loss = self._workload.loss(self._wrapped(inputs), targets)
        # Dividing here would cost two kernels a step; the same factor as the seed of backward costs none.
        loss.backward(self._seed_of(count, loss))
        self._optimizer.step()
        return loss.detach() if count else torch.zeros_like(loss)

    def predict(self, inputs: Tensor) -> Tensor:
        """Outputs of the network in evaluation mode, without gradients."""
        if self.core.training:
            self._wrapped.eval()
        with torch.no_grad(), autocast(self._precision, self._device):
            return self._evaluated(inputs)  # type: ignore[no-any-return]

    def settle(self, share: float, add_up: Callable[[Tensor], Tensor]) -> None:
        """Before judging: one network of what seats gathered apart, as in `combine_running_statistics`."""
        combine_running_statistics(self.core, share, add_up)

    def state(self) -> State:
        """A copy of weights (under the person's own names) and optimiser state, the same for any strategy."""
        return {
            "model": {name: value.detach().clone() for name, value in self.core.state_dict().items()},
            "optimizer": _copy(self._optimizer.state_dict()),
        }

    def load(self, state: State) -> None:
        """Take over a state; names and shapes must match exactly."""
        self.core.load_state_dict(state["model"], strict=True)
        self._optimizer.load_state_dict(_copy(state["optimizer"]))

    def _seed_of(self, count: int, loss: Tensor) -> Tensor:
        seed = self._seeds.get(count)
        if seed is None:
            seed = torch.full_like(loss, self._averaged_over / count if count else 0.0, requires_grad=False)
            self._seeds[count] = seed
        return seed


def assemble(
    workload: Workload,
    model: nn.Module,
    seat: Seat,
    train: TrainSpec,
    execution: ExecutionSpec,
    *,
    wrap: Callable[[nn.Module], nn.Module] = lambda placed: placed,
    averaged_over: int = 1,
    evaluate_wrapped: bool = False,
) -> Learner:
    """Place on the device -> precision -> strategy's wrapper -> optimiser."""
    set_flags(execution.precision)
    placed = model.to(torch.device(seat.devices[0]))
    placed = placed.to(parameter_type(execution.precision))
    wrapped = wrap(placed)
    optimizer = workload.optimizer(placed.parameters(), train)
    return Learner(
        workload,
        placed,
        wrapped,
        optimizer,
        execution.precision,
        averaged_over=averaged_over,
        evaluate_wrapped=evaluate_wrapped,
    )


def _copy(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copy(item) for item in value]
    return value
