"""Sums of gradients through shared memory: by 2 and 3 seats that add up everything, by 5 that add up a slice each."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from torch import nn

from escala.execution.gradient_layout import LINE, laid_out
from escala.execution.shared_sum import add_up

SUPPORT = Path(__file__).parents[1] / "support"
sys.path.insert(0, str(SUPPORT))
import shared_seat  # noqa: E402


@cache
def by_seats(size: int, folder: Path) -> list[dict[str, np.ndarray]]:
    folder.mkdir()
    words = [
        [sys.executable, str(SUPPORT / "shared_seat.py"), str(size), str(rank), str(folder)] for rank in range(size)
    ]
    seats = [subprocess.Popen(command) for command in words]
    assert [seat.wait(120) for seat in seats] == [0] * size
    return [dict(np.load(folder / f"{rank}.npz")) for rank in range(size)]


@pytest.fixture(scope="module", params=[2, 3, 5])
def summed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, np.ndarray]]:
    return by_seats(request.param, tmp_path_factory.mktemp("shared") / "seats")


def test_all_seats_get_the_same_bits_and_they_are_the_sum_by_rank(summed: list[dict[str, np.ndarray]]) -> None:
    for number, parameter in enumerate(shared_seat.parameters()):
        for step in range(shared_seat.STEPS):
            parts = [shared_seat.gradient(rank, step, number, parameter) for rank in range(len(summed))]
            # 16 bits are rounded once, from a sum in float32; 32 and 64 bits after each addend.
            total = parts[0].float() if parameter.element_size() == 2 else parts[0].clone()
            for part in parts[1:]:
                total += part
            expected = total.to(parameter.dtype).double().numpy()
            for seat in summed:
                np.testing.assert_array_equal(seat[f"{step} {number}"], expected)


def test_a_parameter_without_gradient_is_told_where_it_is_not_looked_for(
    summed: list[dict[str, np.ndarray]],
) -> None:
    for rank, seat in enumerate(summed):
        assert f"error[MODEL-UNUSED] rank {rank}:" in str(seat["missing"])


def test_whoever_waits_in_vain_names_the_rank(summed: list[dict[str, np.ndarray]]) -> None:
    assert "error[ENV-SEAT] rank 0: waited 0.05 s for rank 1" in str(summed[0]["late"])


def test_nothing_is_left_in_shared_memory(summed: list[dict[str, np.ndarray]]) -> None:
    assert not [name for name in os.listdir("/dev/shm") if "escala" in name]


@given(some.lists(some.tuples(some.sampled_from(shared_seat.FORMATS), some.integers(0, 100)), min_size=1, max_size=8))
def test_gradients_lie_apart_and_the_shares_of_all_ranks_tile_them(shapes: list[tuple[torch.dtype, int]]) -> None:
    layout = laid_out([nn.Parameter(torch.zeros(count, dtype=kind)) for kind, count in shapes])
    memory = bytearray(layout.room)
    for number, (kind, count) in enumerate(shapes):
        view = layout.view(memory, 0, number)
        assert (view.dtype, view.numel()) == (kind, count)
        view += 1
    for size in (1, 2, 3, 7):
        for rank in range(size):
            for part in layout.parts(memory, 0, rank, size):
                assert part.storage_offset() * part.element_size() % LINE == 0
                part += 1
    for number in range(len(shapes)):
        assert layout.view(memory, 0, number).eq(5).all()


def test_16_bits_are_rounded_once() -> None:
    slots = [torch.tensor([value], dtype=torch.bfloat16) for value in (256.0, 1.0, 1.0)]
    result = torch.zeros(1, dtype=torch.bfloat16)
    add_up(slots, result)
    assert result.item() == 258
