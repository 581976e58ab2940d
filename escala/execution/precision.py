"""Number formats: what the weights are held in and what products are computed in."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from escala.terms.experiment import Precision


def set_flags(precision: Precision) -> None:
    """Allow TensorFloat-32 in products and convolutions for `tf32` and for nothing else.

    PyTorch allows it in convolutions by default, so an `fp32` run would silently be half a tf32 run.
    """
    allow = precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = allow
    torch.backends.cudnn.allow_tf32 = allow


def parameter_type(precision: Precision) -> torch.dtype:
    """The type that weights, gradients and inputs are held in."""
    return torch.float64 if precision == "fp64" else torch.float32


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """The context of a forward pass: mixed precision for `bf16`, nothing otherwise."""
    if precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()
