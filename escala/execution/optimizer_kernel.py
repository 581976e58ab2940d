"""How an optimiser goes over the weights: one kernel for each operation on each, on many at once, or one for all."""

from __future__ import annotations

import inspect

import torch
from torch import nn

from escala.terms.errors import Unfit
from escala.terms.experiment import OptimizerKernel

KERNELS = ("foreach", "fused")
"""The arguments that torch's optimisers have for it."""


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
