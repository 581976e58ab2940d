"""One optimiser step from gradients that are ready: unscaled, clipped, taken or skipped, at its learning rate."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from escala.execution.device_steps import DeviceSteps
from escala.execution.lanes import HERE, Lane, lanes
from escala.execution.schedule import is_constant, rate
from escala.execution.stretches import Stretch, divisible, step_on
from escala.terms.experiment import Precision, TrainSpec

Arrived = Sequence[tuple[nn.Parameter, Tensor]] | Stretch
"""A part of a network with its gradients, which are complete. Stretches of a weight come in order, all of them."""

LANES = 2
"""So many parts are stepped on at once."""


class Stepper:
    """An optimiser with its schedule, clipping and loss scaling.

    `taken` counts the steps that changed weights; only they move the schedule. `skipped` counts those that loss
    scaling left out because a gradient was not finite. `clip` makes the norm of all gradients of its parameters no
    larger than a number; where a seat holds but a part of them, it must know of the others. `on_device`: what changes
    from one step to the next lies on the device, since recorded steps go by no number of the host.
    """

    def __init__(
        self,
        optimizer: torch.optim.Optimizer,
        train: TrainSpec,
        precision: Precision,
        device: torch.device,
        clip: Callable[[Sequence[nn.Parameter], float], object] = nn.utils.clip_grad_norm_,
        *,
        on_device: bool = False,
    ) -> None:
        self.optimizer = optimizer
        self.parameters: Sequence[nn.Parameter] = [p for group in optimizer.param_groups for p in group["params"]]
        self.taken = self.skipped = 0
        self._train = train
        self._clip_to = clip
        self._constant = is_constant(train)
        self._total: int | None = None
        self._scaler = torch.amp.GradScaler(device.type) if precision == "fp16" else None
        self._scale = self._scaler.get_scale() if self._scaler else 1.0
        self._beside = lanes(device, LANES)
        self._device_steps = DeviceSteps(device) if on_device else None
        if self._device_steps is not None and not self._constant:
            for group in optimizer.param_groups:
                group["lr"] = self._device_steps.rate

    @property
    def scales(self) -> bool:
        """Whether losses are scaled, and steps may be skipped."""
        return self._scaler is not None

    def plan_for(self, total: int) -> None:
        """Lay the schedule over `total` optimiser steps."""
        self._total = total
        if self._device_steps is not None and not self._constant:
            self._device_steps.plan([rate(self._train, step, total) for step in range(max(1, total))])

    @property
    def made(self) -> int | Tensor:
        """Steps tried so far; an int64 tensor (0-d) where it lies on the device."""
        return self.taken + self.skipped if self._device_steps is None else self._device_steps.taken

    def went(self, steps: int) -> None:
        """So many steps were taken elsewhere, by a replayed graph, which counted them on the device."""
        self.taken += steps

    def scaled(self, seed: Tensor) -> Tensor:
        """The seed of backward, times the scale that keeps small gradients of 16 bits from vanishing."""
        return self._scaler.scale(seed) if self._scaler else seed

    def take(self, arriving: Iterator[Arrived] | None = None) -> None:
        """One optimiser step. Raises RuntimeError where a schedule was never laid over a number of steps.

        Where gradients are still `arriving`, the optimiser steps on each part as it comes, or, where all of them
        decide about the step together, once on all.
        """
        if not self._constant:
            self._set_rate()
        together = self._scaler is not None or self._train.clip_norm is not None
        if arriving is not None and together:
            for _ in arriving:
                pass
            arriving = None
        if self._scaler is None:
            self._clip()
            if arriving is None:
                self.optimizer.step()
            else:
                step_by_part(self.optimizer, self.parameters, arriving, self._beside)
            self.taken += 1
            if self._device_steps is not None:
                self._device_steps.end()
            return
        self._scaler.unscale_(self.optimizer)
        self._clip()
        # Whether a step is skipped is decided on the host, so it waits for the device, as everywhere with fp16.
        self._scaler.step(self.optimizer)
        self._scaler.update()
        scale = self._scaler.get_scale()
        if scale < self._scale:
            self.skipped += 1
        else:
            self.taken += 1
        self._scale = scale

    def progress(self) -> dict[str, Any]:
        """What a checkpoint must hold beside weights and the optimiser's own state; plain numbers."""
        scaler = self._scaler.state_dict() if self._scaler else {}
        return {"taken": self.taken, "skipped": self.skipped, "scaler": scaler}

    def resume(self, progress: dict[str, Any]) -> None:
        """Take over what `progress` gave; a scaler's state is left alone where this precision has none."""
        self.taken, self.skipped = progress["taken"], progress["skipped"]
        if self._device_steps is not None:
            self._device_steps.resume(self.taken + self.skipped)
        if self._scaler and progress["scaler"]:
            self._scaler.load_state_dict(progress["scaler"])
            self._scale = self._scaler.get_scale()

    def _set_rate(self) -> None:
        if self._device_steps is not None:
            self._device_steps.begin()
            return
        if self._total is None:
            raise RuntimeError("a schedule needs to know the number of steps: plan_for(total)")
        now = rate(self._train, self.taken, self._total)
        for group in self.optimizer.param_groups:
            group["lr"] = now

    def _clip(self) -> None:
        if self._train.clip_norm is not None:
            self._clip_to(self.parameters, self._train.clip_norm)


def step_by_part(
    optimizer: torch.optim.Optimizer,
    parameters: Sequence[nn.Parameter],
    arriving: Iterator[Arrived],
    beside: Sequence[Lane] = (HERE,),
) -> None:
    """The optimiser's step, a part at a time: it passes over what has no gradient. All keep theirs afterwards.

    Parts go to the lanes `beside` in turn, since a step on few weights leaves most of a device idle.
    """
    found = [parameter.grad for parameter in parameters]
    for parameter in parameters:
        parameter.grad = None
    begun = list[Lane]()
    for lane in itertools.cycle(beside):
        if lane not in begun:
            begun.append(lane)
        with lane.begin():
            # Within, as whoever gives the next part lets the current queue wait for it.
            part = next(arriving, None)
            if part is None:
                break
            if isinstance(part, Stretch) and part.last:
                # Its step changes what those on the others read, and takes all of the weight if they were left out.
                _join(begun)
            _step_on_part(optimizer, part)
    _join(begun)
    for parameter, own in zip(parameters, found, strict=True):
        parameter.grad = own


def _step_on_part(optimizer: torch.optim.Optimizer, part: Arrived) -> None:
    if isinstance(part, Stretch):
        if divisible(optimizer, part.weight):
            step_on(optimizer, part)
            return
        if not part.last:
            return
        part = [(part.weight, part.gradient)]
    for parameter, gradient in part:
        parameter.grad = gradient
    optimizer.step()
    for parameter, _ in part:
        parameter.grad = None


def _join(begun: Sequence[Lane]) -> None:
    for lane in begun:
        lane.joined()()
