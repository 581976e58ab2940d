"""Number formats: what the weights are held in and what products are computed in."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, nullcontext
from typing import cast

import torch
from torch import nn

from escala.terms.errors import EscalaError
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
    """The context of a forward pass: 16-bit products for `bf16`, `fp16` and `fp8`, nothing otherwise.

    With `fp8` linear layers compute in 8 bits by themselves, and everything between them in bfloat16.
    """
    narrow = {"bf16": torch.bfloat16, "fp8": torch.bfloat16, "fp16": torch.float16}.get(precision)
    return nullcontext() if narrow is None else torch.autocast(device.type, dtype=narrow)


def narrowed(model: nn.Module, precision: Precision) -> nn.Module:
    """The model with 8-bit linear layers for `fp8` (weights stay in float32), itself otherwise.

    Raises `MODEL-FP8` where no linear layer has sizes that are multiples of 16, as the hardware asks.
    """
    if precision != "fp8":
        return model
    convert = importlib.import_module("torchao.float8").convert_to_float8_training

    def fits(layer: nn.Module, _: str) -> bool:
        return isinstance(layer, nn.Linear) and layer.in_features % 16 == 0 and layer.out_features % 16 == 0

    if not any(fits(layer, "") for layer in model.modules()):
        raise EscalaError(
            "MODEL-FP8",
            "execution.precision",
            "the network has no linear layer that fp8 could take",
            expected="sizes that are multiples of 16",
            next_step="use bf16",
        )
    return cast(nn.Module, convert(model, module_filter_fn=fits))
