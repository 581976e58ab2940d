"""How images and convolutions' weights lie in memory: channel by channel, or all channels of a pixel together."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from escala.terms.experiment import MemoryFormat

Convert = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def laid_out(model: nn.Module, memory_format: MemoryFormat) -> nn.Module:
    """The model, its weights of four dimensions laid out so. Numbers, names and shapes stay."""
    if memory_format == "contiguous":
        return model
    # torch.nn.Module.to takes a memory format, which its type hints leave out.
    return model.to(memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]


def lay_out_inputs(convert: Convert, memory_format: MemoryFormat) -> Convert:
    """What makes inputs of stored rows, and then lays out those of four dimensions."""
    if memory_format == "contiguous":
        return convert

    def converted(raw: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        inputs, wanted = convert(raw, targets)
        return channels_last(inputs), wanted

    return converted


def channels_last(images: Tensor) -> Tensor:
    """[n, channels, height, width] with all channels of a pixel together; other shapes as they are."""
    if images.ndim != 4:
        return images
    laid = images.contiguous(memory_format=torch.channels_last)
    rows, channels, height, width = laid.shape
    if channels > 1:
        return laid
    # With one channel the two layouts are the same bytes, and only strides tell torch which one is meant. By views,
    # which torch.compile follows, where `as_strided` breaks a step into two.
    return laid.view(rows, height, width, 1).permute(0, 3, 1, 2)


def lay_out_state(optimizer: torch.optim.Optimizer) -> None:
    """Lay what an optimiser keeps of each weight out as the weight itself, as kernels over several tensors ask.

    A checkpoint holds it in the plain layout.
    """
    for parameter, values in optimizer.state.items():
        for name, value in values.items():
            own = isinstance(value, Tensor) and value.shape == parameter.shape
            if own and value.stride() != parameter.stride():
                values[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
