"""How an optimiser goes over the weights: one kernel for each operation on each, on many at once, or one for all."""

from __future__ import annotations

import inspect

import torch
from torch import nn

from escala.terms.errors import Unfit
from escala.terms.experiment import OptimizerKernel

KERNELS = ("foreach", "fused")
"""The arguments that torch's optimisers have for it."""
_RECORDED = (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW)
"""Optimisers whose state, set to 0, is that of the first step, so that steps can be tried before it."""


def with_kernel(optimizer: torch.optim.Optimizer, kernel: OptimizerKernel) -> torch.optim.Optimizer:
    """An optimiser over the same groups, made to go over them with that kernel; with `default` the same one.

    Raises `Unfit` where this optimiser, or this kind of device or weight, has no such kernel.
    """
    if kernel == "default":
        return optimizer
    kind = type(optimizer)
    known = inspect.signature(kind).parameters
    if not kind.__module__.startswith("torch.optim") or kernel not in known:
        raise Unfit(f"the optimiser {kind.__name__} has no {kernel} kernel")
    chosen = dict.fromkeys((name for name in KERNELS if name in known), False) | {kernel: True}
    settings = {name: value for name, value in optimizer.defaults.items() if name in known} | chosen
    groups = [group | chosen for group in optimizer.param_groups]
    weights = [weight for group in groups for weight in group["params"]]
    for device, dtype in dict.fromkeys((weight.device, weight.dtype) for weight in weights):
        # Torch looks at devices and types of weights only in the first step, so one is made here with a weight aside.
        aside = nn.Parameter(torch.zeros(1, device=device, dtype=dtype))
        aside.grad = torch.zeros_like(aside)
        try:
            kind([aside], **settings).step()
        except RuntimeError as error:
            raise Unfit(f"{kind.__name__} has no {kernel} kernel here: {str(error).splitlines()[0]}") from error
    return kind(groups, **settings)


def recordable(optimizer: torch.optim.Optimizer, kernel: OptimizerKernel, *, moving: bool) -> torch.optim.Optimizer:
    """As `with_kernel`, for steps that are recorded: `default` is fused; `moving`: the rate is that of a schedule.

    Raises `Unfit` where this optimiser would read on the host what changes from step to step.
    """
    kind = type(optimizer)
    if kind not in _RECORDED:
        names = ", ".join(known.__name__ for known in _RECORDED)
        raise Unfit(f"capture knows the first step of {names} alone, and not that of {kind.__name__}")
    if any(group.get("dampening") for group in optimizer.param_groups):
        raise Unfit("capture cannot have SGD with dampening, whose first step is another than the rest")
    if kind is torch.optim.SGD and kernel == "foreach" and moving:
        raise Unfit(
            "capture with a schedule needs the rate on the device, and SGD's foreach kernel reads it on the host; "
            'use optimizer_kernel = "fused"'
        )
    made = with_kernel(optimizer, "fused" if kernel == "default" else kernel)
    for group in made.param_groups:
        if "capturable" in group:
            # Torch asks for this word of every optimiser that has it, also where its fused kernel needs no telling.
            group["capturable"] = all(weight.device.type != "cpu" for weight in group["params"])
    return made
