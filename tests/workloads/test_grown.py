"""A language model as large as a share of a device's memory."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from escala.terms.errors import EscalaError
from escala.workloads import workload
from escala.workloads.transformer_lm import grown

GIB = 2**30


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("fill", [0.3, 0.9])
def test_the_state_takes_the_share_of_memory_that_was_asked_for(fill: float, tied: bool) -> None:
    options = {"fill": fill, "vocabulary": 211, "length": 16, "tied": tied}
    work = workload("transformer-lm", options)
    with torch.device("meta"):
        made = workload("transformer-lm", work.decided(options, GIB // 2)).model()
    state = 16 * sum(parameter.numel() for parameter in made.parameters())
    # A layer more would be too much.
    assert 0.8 * fill * GIB / 2 < state <= fill * GIB / 2


@given(parameters=st.integers(0, 10**12), rest=st.integers(2, 200_000))
def test_width_and_depth_grow_together(parameters: int, rest: int) -> None:
    size = grown(parameters, rest)
    width, layers = size["width"], size["layers"]
    assert width % 256 == 0
    assert (size["heads"], size["ff"]) == (width // 64, 4 * width)
    assert layers >= max(2, width // 128)
    total = rest * width + layers * (12 * width**2 + 13 * width)
    assert total <= parameters or size == grown(0, rest)


def test_published_sizes_lie_about_there() -> None:
    # Brown et al. 2020, table 2.1: 24 layers of width 2048, and 32 of 4096.
    for parameters, layers, width in ((1_320_000_000, 24, 2048), (6_660_000_000, 32, 4096)):
        size = grown(parameters, 50_257 + 2048)
        assert size["width"] == pytest.approx(width, rel=0.15)
        assert size["layers"] == pytest.approx(layers, rel=0.3)


def test_a_share_of_no_known_device_is_no_network() -> None:
    with pytest.raises(EscalaError, match="share of a device"):
        workload("transformer-lm", {"fill": 0.5}).model()


@pytest.mark.parametrize("key", ["width", "layers", "heads", "ff"])
def test_a_size_beside_fill_is_refused(key: str) -> None:
    options = {"fill": 0.5, key: 8 if key != "width" else 512}
    with pytest.raises(EscalaError, match="fill, which decides it"):
        workload("transformer-lm", options).decided(options, GIB)


@pytest.mark.parametrize("fill", [-0.1, 101.0])
def test_shares_out_of_range_are_refused(fill: float) -> None:
    with pytest.raises(EscalaError, match="out of range"):
        workload("transformer-lm", {"fill": fill})


def test_without_it_options_are_what_was_given() -> None:
    options = {"layers": 2}
    assert workload("transformer-lm", options).decided(options, GIB) == options
