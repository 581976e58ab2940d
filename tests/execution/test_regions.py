"""Networks in regions are the networks, in forward, back, mode and names of weights."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as some
from torch import nn

from escala.execution import compiled as compiled_module
from escala.execution.compiled import compiled
from escala.execution.regions import InRegions, cut
from escala.workloads import workload


class Own(nn.Sequential):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return inputs


def network() -> nn.Sequential:
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 4), nn.Linear(4, 4))
    made[4].weight = made[0].weight
    return made


@given(some.lists(some.integers(0, 50), min_size=1, max_size=12), some.integers(1, 6))
def test_regions_are_all_children_in_order_and_none_is_empty(widths: list[int], regions: int) -> None:
    whole = nn.Sequential(*(nn.Linear(1, width, bias=False) for width in widths))
    found = cut(whole, regions)
    assert [child for region in found for child in region] == list(whole)
    assert len(found) == min(regions, len(widths))
    assert all(len(region) for region in found)


def test_every_region_has_about_twice_the_bytes_of_the_one_before_without_what_they_share() -> None:
    large, small = nn.Linear(100, 100, bias=False), [nn.Linear(10, 10) for _ in range(7)]
    last = nn.Linear(100, 100, bias=False)
    last.weight = large.weight
    assert [len(region) for region in cut(nn.Sequential(large, *small, last), 3)] == [2, 2, 5]


def test_it_learns_as_the_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_module, "_compile", lambda what, *_: what)
    work, inputs = workload("mlp", {}), torch.rand(8, 4)
    plain, apart = network(), network()
    regions = compiled(apart, True, work, 2)
    assert isinstance(regions, InRegions)
    pairs: list[tuple[nn.Module, nn.Sequential]] = [(plain, plain), (regions, apart)]
    for made, core in pairs:
        made.train()
        assert core.training
        assert core[2].training
        torch.manual_seed(1)
        made(inputs).sum().backward()
        made.eval()
        assert not core.training
        assert not core[2].training
    assert torch.equal(plain(inputs), regions(inputs))
    for one, other in zip(plain.parameters(), apart.parameters(), strict=True):
        assert one.grad is not None
        assert other.grad is not None
        assert torch.equal(one.grad, other.grad)


def test_what_is_no_plain_sequence_stays_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_module, "_compile", lambda what, *_: what)
    for module in (Own(nn.Linear(2, 2), nn.Linear(2, 2)), nn.Linear(2, 2)):
        assert compiled(module, True, workload("mlp", {}), 2) is module
    plain = network()
    assert compiled(plain, True, workload("mlp", {})) is plain
    assert compiled(plain, False, workload("mlp", {}), 2) is plain
