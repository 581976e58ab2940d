from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from escala.execution.memory_format import channels_last, laid_out, lay_out_inputs, lay_out_state

SIZES = st.integers(1, 5)


def is_told(images: Tensor) -> bool:
    """Whether strides, and not only sizes of one, say that channels lie together."""
    _, channels, height, width = images.shape
    return images.stride() == (channels * height * width, 1, width * channels, channels)


@given(SIZES, SIZES, SIZES, SIZES)
def test_images_of_any_size_lie_so_and_hold_the_same(rows: int, channels: int, height: int, width: int) -> None:
    images = torch.rand(rows, channels, height, width)
    laid = channels_last(images)
    assert torch.equal(laid, images)
    assert laid.is_contiguous(memory_format=torch.channels_last)
    if (channels > 1 and height * width > 1) or channels == 1:
        assert is_told(laid)


def test_one_channel_costs_no_copy() -> None:
    images = torch.rand(4, 1, 6, 6)
    assert channels_last(images[1:]).data_ptr() == images[1:].data_ptr()


@pytest.mark.parametrize("channels", [1, 3])
def test_a_compiled_step_lays_images_out_in_one_piece(channels: int) -> None:
    compiled = torch.compile(channels_last, fullgraph=True, backend="eager")
    images = torch.rand(4, channels, 6, 6)
    laid = compiled(images)
    assert torch.equal(laid, images)
    assert is_told(laid)


def test_other_rows_are_left_alone() -> None:
    rows = torch.rand(3, 7)
    assert channels_last(rows) is rows


def test_inputs_are_laid_out_after_they_are_made() -> None:
    def convert(raw: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        return raw.float(), targets

    raw, targets = torch.ones(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(2)
    inputs, wanted = lay_out_inputs(convert, "channels_last")(raw, targets)
    assert is_told(inputs)
    assert wanted is targets
    assert lay_out_inputs(convert, "contiguous") is convert


def test_weights_of_convolutions_lie_so_under_their_own_names() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten(), nn.Linear(16, 2))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert laid_out(model, "contiguous")[0].weight.stride() == (27, 9, 3, 1)
    after = laid_out(model, "channels_last").state_dict()
    assert after["0.weight"].stride() == (27, 1, 9, 3)
    assert {name: value.tolist() for name, value in after.items()} == {
        name: value.tolist() for name, value in before.items()
    }


@pytest.mark.parametrize("kernel", ["foreach", "fused"])
def test_a_plain_checkpoint_goes_on_in_this_layout(kernel: str) -> None:
    def trained(memory_format: str) -> tuple[nn.Module, torch.optim.Optimizer]:
        torch.manual_seed(0)
        model = laid_out(nn.Conv2d(3, 4, 3), memory_format)  # type: ignore[arg-type]
        return model, torch.optim.AdamW(model.parameters(), lr=0.1, **{kernel: True})

    def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        model(torch.linspace(0, 1, 150).view(2, 3, 5, 5)).square().sum().backward()
        optimizer.step()

    plain, first = trained("contiguous")
    step(plain, first)
    other, second = trained("channels_last")
    other.load_state_dict(plain.state_dict())
    second.load_state_dict(deepcopy(first.state_dict()))
    lay_out_state(second)
    weight = other.weight
    assert second.state[weight]["exp_avg"].stride() == weight.stride() != plain.weight.stride()
    step(plain, first)
    step(other, second)
    torch.testing.assert_close(other.weight, plain.weight)
