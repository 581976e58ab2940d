"""What a convolution takes for itself on an accelerator, as cuDNN was seen to take it (9.19, on an H200)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from escala.terms.experiment import Precision

_FEW = 4
"""Channels of inputs up to which nothing was taken that counts: images as they come."""
_TILE = 4
_TRANSFORMED = (_TILE + 2) ** 2
_FOURIER = {16: (6.5, 32), 32: (6.5, 32.5), 64: (6.5, 26.5)}
"""MiB of inputs from which, and below which, spectra are taken, by the side of their squares."""

_ops = torch.ops.aten


class _Convolution(NamedTuple):
    inputs: Tensor
    weight: Tensor
    outputs: Tensor
    stride: Sequence[int]
    dilation: Sequence[int]
    transposed: bool
    groups: int
    back: bool

    @property
    def bytes(self) -> int:
        return sum(value.numel() * value.itemsize for value in (self.inputs, self.weight, self.outputs))

    @property
    def transforms(self) -> bool:
        """Whether single precision goes by transforms of small squares: 3 x 3 weights, one step at a time."""
        plain = not self.transposed and self.groups == 1 and self.inputs.dtype is torch.float32
        steps = set(self.stride) | set(self.dilation)
        return plain and tuple(self.weight.shape[2:]) == (3, 3) and steps == {1}


def workspace(precision: Precision, func: Callable[..., Any], args: Any, made: Any) -> int:
    """Bytes that an operation takes beside what it makes; 0 for all but convolutions.

    Tensor cores want all channels of a pixel together: inputs, weights and outputs that lie otherwise are copied.
    Single precision wants the plain layout. For the way back it transforms squares of 4 x 4 numbers into 6 x 6
    (Winograd; Lavin and Gray, arXiv:1509.09308), and weights of 3 x 3, too, which is what it took for 28 of 32
    shapes. On the way forward it goes by Fourier transforms or takes nothing. How much these take is exact; when they
    are chosen is only what was seen, of 64 channels of 32 x 32 up to 25 MiB and not from 28, of 128 channels of
    16 x 16 up to 32 MiB, but not for 8, and of 19 x 25 for 7.4 already.
    """
    found = _convolution(func, args, made)
    if found is None or found.inputs.shape[1] <= _FEW:
        return 0
    last = found.inputs.ndim == 4 and found.inputs.is_contiguous(memory_format=torch.channels_last)
    if not found.transforms or precision == "tf32":
        # Forward in the plain layout single precision takes nothing where it transforms nothing.
        fits = not (last or found.back) if precision == "fp32" else last
        return 0 if fits else found.bytes
    moved = found.bytes if last else 0
    if found.back:
        return moved + _squares(found.inputs) + _squares(found.outputs) + _TRANSFORMED // 9 * found.weight.nbytes
    return moved + _spectra(found)


def _squares(images: Tensor) -> int:
    rows, channels, *sides = images.shape
    return rows * channels * math.prod(-(-side // _TILE) for side in sides) * _TRANSFORMED * images.itemsize


def _spectra(found: _Convolution) -> int:
    """Of inputs and weights, or of outputs where these are more, in squares of 16, 32 or 64; and as much again."""
    side = next((side for side in _FOURIER if side >= max(found.inputs.shape[2:]) + 2), None)
    if side is None or not _FOURIER[side][0] <= found.inputs.nbytes / 2**20 < _FOURIER[side][1]:
        return 0
    planes = [math.prod(value.shape[:2]) for value in (found.inputs, found.weight, found.outputs)]
    # Of real numbers half the spectrum and the middle, each a complex one.
    each = side * (side // 2 + 1) * 2 * found.inputs.itemsize
    return 2 * each * max(planes[0] + planes[1], planes[2])


def _convolution(func: Callable[..., Any], args: Any, made: Any) -> _Convolution | None:
    if func is _ops.convolution.default:
        inputs, weight, _, stride, _, dilation, transposed, _, groups = args
        return _Convolution(inputs, weight, made, stride, dilation, transposed, groups, back=False)
    if func is _ops.convolution_backward.default:
        outputs, inputs, weight, _, stride, _, dilation, transposed, _, groups, _ = args
        return _Convolution(inputs, weight, outputs, stride, dilation, transposed, groups, back=True)
    return None
