"""Initial weights that differ anywhere have another number, whatever the threads that add them up."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import nn

from escala.run.fingerprint import fingerprint


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def network() -> nn.Module:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(100, 300), nn.BatchNorm1d(300), nn.Linear(300, 7), nn.Flatten())
    made.register_buffer("seen", torch.zeros(5, dtype=torch.bool))
    made.register_buffer("none", torch.zeros(0))
    made.register_buffer("narrow", torch.rand(3, 700).bfloat16())
    return made


def test_threads_do_not_matter() -> None:
    found = set()
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        found.add(fingerprint(network()))
    assert len(found) == 1


@pytest.mark.parametrize("place", [0, 1023, 1024, 20_000, 29_999])
def test_one_weight_matters(place: int) -> None:
    one, other = network(), network()
    with torch.no_grad():
        next(other.parameters()).view(-1)[place] += 1e-3
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize("name", ["0.weight", "narrow"])
def test_no_change_is_too_small(name: str) -> None:
    one, other = network(), network()
    # The last bit of one value among many.
    other.state_dict()[name].view(-1).view(torch.uint8)[0] ^= 1
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize("name", ["seen", "narrow", "1.running_mean"])
def test_what_is_no_parameter_matters(name: str) -> None:
    one, other = network(), network()
    other.get_buffer(name).view(-1)[-1] = 1
    assert fingerprint(one) != fingerprint(other)
