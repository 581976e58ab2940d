"""Batch normalisation by the statistics of the rows of ALL seats (Zhang et al. 2018, arXiv:1803.08904).

torch's `SyncBatchNorm` computes the same, on GPUs only and for counts above 0 only.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from escala.execution.batchnorm_layer import Layer

_NARROW = (torch.float16, torch.bfloat16)


class SyncNorm(Layer):
    """One forward pass of all seats together is normalised as torch's layer would normalise it on one seat.

    All seats must pass the same number of times; whoever has no row passes one that does not count. The running
    statistics are the same on every seat.
    """

    def train_on(self, inputs: Tensor) -> Tensor:
        """Raises ValueError, as torch does, where the whole step has one value a channel and so no variance."""
        if self.piece.of * inputs[0, 0].numel() == 1:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {inputs.shape}")
        counts = self.piece.rows > 0
        mean, variance, total = _statistics(inputs.detach(), counts=counts)
        if self.running_mean is not None and self.running_var is not None and not self.piece.again:
            part = self.counted()
            unbiased = variance * (total / (total - 1).clamp_min(1))
            for running, new in ((self.running_mean, mean), (self.running_var, unbiased)):
                running.add_((new - running).mul_(part))
        normalised: Tensor = _Normalise.apply(  # type: ignore[no-untyped-call]
            inputs, self.weight, self.bias, mean, variance, total, counts, self.eps
        )
        return normalised


def _statistics(inputs: Tensor, *, counts: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and biased variance [channels] of what counts on all seats, and the number of values a channel (0-d)."""
    channels = inputs.shape[1]
    wide = _wide(inputs)
    # Means and variances are exchanged, not sums of squares: their difference would lose a small variance's digits.
    # Every row of the table but the own one is zero, so the sum is the table, to the last bit the same on each seat.
    table = wide.new_zeros(dist.get_world_size(), 2 * channels + 1)
    if counts:
        mean, variance = _moments(wide)
        own = table[dist.get_rank()]
        own[:channels], own[channels:-1] = mean, variance
        own[-1] = inputs.numel() // channels
    dist.all_reduce(table)
    means, variances, sizes = table[:, :channels], table[:, channels:-1], table[:, -1:]
    total = sizes.sum()
    shares = sizes / total
    mean = (shares * means).sum(0)
    return mean, (shares * (variances + (means - mean).square())).sum(0), total


def _moments(values: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and biased variance [channels]."""
    axes = _axes(values)
    if values.device.type != "cpu":
        variance, mean = torch.var_mean(values, axes, correction=0)
        return mean, variance
    # `var_mean` over these axes took 19 ms of one core for 64 x 64 x 32 x 32 floats; this takes 3.
    mean = values.mean(axes)
    centred = values - _over(mean, values)
    # What rounding left in the mean of values far from nothing.
    rest = centred.mean(axes)
    return mean + rest, centred.square_().mean(axes) - rest.square()


class _Normalise(torch.autograd.Function):
    """(inputs - mean) / sqrt(variance + eps) * weight + bias, where mean and variance depend on all seats' inputs."""

    @staticmethod
    def forward(
        ctx: Any,
        inputs: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        mean: Tensor,
        variance: Tensor,
        total: Tensor,
        counts: bool,
        eps: float,
    ) -> Tensor:
        ctx.save_for_backward(inputs, weight, mean, (variance + eps).rsqrt(), total)
        ctx.counts = counts
        return functional.batch_norm(inputs, mean, variance, weight, bias, training=False, eps=eps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        """With x the normalised inputs and g the gradient: (g - mean(g) - x mean(g x)) * weight / deviation.

        The means go over the values of all seats. What did not count moved no statistic, so there it is
        g * weight / deviation. Gradients of weight and bias are this seat's own: the strategy adds them up.
        """
        inputs, weight, mean, inverse, total = ctx.saved_tensors
        wide, axes = _wide(grad), _axes(grad)
        normalised = (_wide(inputs) - _over(mean, inputs)).mul_(_over(inverse, inputs))
        sums = torch.stack([wide.sum(axes), (wide * normalised).sum(axes)])
        of_weight = sums[1].to(weight.dtype) if ctx.needs_input_grad[1] else None
        of_bias = sums[0].to(mean.dtype) if ctx.needs_input_grad[2] else None
        if not ctx.needs_input_grad[0]:
            return None, of_weight, of_bias, None, None, None, None, None
        everybody = sums.clone()
        dist.all_reduce(everybody)
        of_inputs = wide
        if ctx.counts:
            means = everybody / total
            of_inputs = wide - normalised.mul_(_over(means[1], inputs)).add_(_over(means[0], inputs))
        scale = inverse if weight is None else inverse * weight
        of_inputs = (of_inputs * _over(scale, inputs)).to(inputs.dtype)
        return of_inputs, of_weight, of_bias, None, None, None, None, None


def _wide(values: Tensor) -> Tensor:
    return values.float() if values.dtype in _NARROW else values


def _axes(values: Tensor) -> list[int]:
    return [0, *range(2, values.ndim)]


def _over(channels: Tensor, values: Tensor) -> Tensor:
    """[channels] -> [1, channels, 1, ...], to be spread over `values`."""
    return channels.view(1, -1, *(1 for _ in values.shape[2:]))
