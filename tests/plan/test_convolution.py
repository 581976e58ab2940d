"""What convolutions take for themselves, by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensorMode

from escala.execution.memory_format import channels_last
from escala.plan.convolution import workspace
from escala.plan.live_bytes import LiveBytes, live_bytes
from escala.plan.traces import TraceKey
from escala.terms.experiment import Precision

MIB = 2**20
FORWARD, BACK = torch.ops.aten.convolution.default, torch.ops.aten.convolution_backward.default


def taken(
    precision: Precision,
    shapes: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]],
    *,
    back: bool = False,
    last: bool = False,
    stride: int = 1,
) -> int:
    """Of inputs, weights and outputs of these shapes."""
    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    with FakeTensorMode():
        inputs, weight, outputs = (torch.empty(shape, dtype=dtype) for shape in shapes)
        if last:
            inputs, weight, outputs = map(channels_last, (inputs, weight, outputs))
        how: tuple[Any, ...] = ([stride] * 2, [1, 1], [1, 1], False, [0, 0], 1)
        if back:
            return workspace(precision, BACK, (outputs, inputs, weight, None, *how, [True] * 3), ())
        return workspace(precision, FORWARD, (inputs, weight, None, *how), outputs)


SMALL = ((128, 256, 8, 8), (256, 256, 3, 3), (128, 256, 8, 8))
"""8 MiB of inputs and as many of outputs in float32, 2.25 MiB of weights."""
STEPS = ((128, 128, 16, 16), (256, 128, 3, 3), (128, 256, 8, 8))
"""16, 1.125 and 8 MiB."""


def test_tensor_cores_take_copies_of_what_lies_in_the_plain_layout() -> None:
    assert taken("tf32", SMALL) == taken("tf32", SMALL, back=True) == round(18.25 * MIB)
    assert taken("bf16", SMALL) == taken("bf16", SMALL, back=True) == round(18.25 * MIB) // 2
    assert taken("bf16", SMALL, last=True) == taken("bf16", SMALL, back=True, last=True) == 0


def test_single_precision_transforms_squares_on_the_way_back() -> None:
    # 4 x 4 become 6 x 6, and 3 x 3 weights, too: 2.25 times images of whole squares, 4 times weights.
    assert taken("fp32", SMALL, back=True) == round((2.25 * 16 + 4 * 2.25) * MIB)
    # 37 x 50 numbers take 10 x 13 squares.
    wide = ((32, 64, 37, 50), (64, 64, 3, 3), (32, 64, 37, 50))
    assert taken("fp32", wide, back=True) == 4 * (2 * 32 * 64 * 130 * 36 + 64 * 64 * 36)
    assert taken("fp32", SMALL, back=True, last=True) == round((2.25 * 16 + 4 * 2.25 + 18.25) * MIB)


def test_single_precision_takes_spectra_on_the_way_forward() -> None:
    # Squares of 16 for 8 x 8 images: 16 x 9 complex numbers for each of 128 x 256 inputs and 256 x 256 weights.
    assert taken("fp32", SMALL) == 2 * (128 * 256 + 256 * 256) * 16 * 9 * 8 == 216 * MIB
    # Of more outputs than inputs and weights those count.
    more = ((250, 64, 16, 16), (128, 64, 3, 3), (250, 128, 16, 16))
    assert taken("fp32", more) == 2 * 250 * 128 * 32 * 17 * 8


def test_inputs_just_below_the_limit_take_no_spectra() -> None:
    # The last convolutions of resnet34 while 90 rows are judged, 6.2 MiB, where 700 MiB would be taken for weights.
    inputs = (90, 512, 5, 7)
    assert taken("fp32", (inputs, (512, 512, 3, 3), inputs)) == 0


@pytest.mark.parametrize(("rows", "taken_mib"), [(64, 264), (100, 336), (112, 0), (125, 0)])
def test_spectra_in_the_largest_squares_are_given_up_first(rows: int, taken_mib: int) -> None:
    # An H200 took 264.14, 338.39 and, of 28 MiB of inputs and more, nothing.
    images = (rows, 64, 32, 32)
    assert taken("fp32", (images, (64, 64, 3, 3), images)) == pytest.approx(taken_mib * MIB, rel=0.02)


def test_spectra_in_squares_of_32_are_taken_up_to_32_mib() -> None:
    images = (256, 128, 16, 16)
    assert taken("fp32", (images, (128, 128, 3, 3), images)) == pytest.approx(408.56 * MIB, rel=0.02)


@pytest.mark.parametrize("rows", [64, 512])
def test_small_and_large_inputs_take_no_spectra(rows: int) -> None:
    inputs = (rows, 256, 8, 8)
    assert taken("fp32", (inputs, (256, 256, 3, 3), inputs)) == 0


def test_images_too_large_for_any_square_take_none() -> None:
    images = (8, 64, 63, 63)
    assert taken("fp32", (images, (64, 64, 3, 3), images)) == 0


def test_other_convolutions_are_copied_at_most() -> None:
    assert taken("fp32", STEPS, stride=2) == 0
    assert taken("fp32", STEPS, stride=2, back=True) == taken("fp32", STEPS, stride=2, last=True) == 25.125 * MIB


def test_images_as_they_come_and_other_operations_take_nothing() -> None:
    first = ((128, 3, 32, 32), (64, 3, 3, 3), (128, 64, 32, 32))
    assert taken("fp32", first) == taken("fp32", first, back=True) == taken("bf16", first) == 0
    assert workspace("fp32", torch.ops.aten.mm.default, (), ()) == 0


def passed(live: LiveBytes, layer: nn.Module, images: Tensor) -> int:
    with live:
        layer(images).sum().backward()
    return live.peak


def test_a_traced_pass_counts_it_on_accelerators_alone() -> None:
    with FakeTensorMode():
        layer = nn.Conv2d(256, 256, 3, padding=1, bias=False)
        images = torch.empty(128, 256, 8, 8, requires_grad=True)
        known = (*layer.parameters(), images)
        host, card = (passed(live_bytes(known, TraceKey(128, fused=fused)), layer, images) for fused in (False, True))
    # Outputs beside their spectra; on the host outputs, their gradients, and those of images and weights.
    assert card == (8 + 216) * MIB
    assert host < 30 * MIB
