"""Which seat keeps the state of which parameter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from escala.strategies.parted import owners, part_optimizer


@given(st.lists(st.integers(1, 10_000), min_size=1, max_size=60), st.integers(1, 9))
def test_every_parameter_has_one_owner_and_loads_differ_by_the_largest_at_most(sizes: list[int], ways: int) -> None:
    found = owners(sizes, ways)
    assert len(found) == len(sizes)
    loads = [sum(size for size, seat in zip(sizes, found, strict=True) if seat == way) for way in range(ways)]
    assert sum(loads) == sum(sizes)
    assert max(loads) - min(loads) <= max(sizes)


def test_all_seats_come_to_the_same_owners() -> None:
    assert owners([5, 5, 5, 1], 2) == owners([5, 5, 5, 1], 2) == [0, 1, 0, 1]


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.usefixtures("alone")
def test_a_seat_steps_and_remembers_its_part_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = list[tuple[int, int]]()

    class Done:
        def wait(self) -> None: ...

    def broadcast(line: torch.Tensor, seat: int, *, async_op: bool) -> Done:
        sent.append((len(line), seat))
        return Done()

    monkeypatch.setattr("escala.strategies.parted.dist.broadcast", broadcast)
    core = nn.Sequential(nn.Linear(4, 3), nn.Conv2d(2, 2, 2).to(memory_format=torch.channels_last))
    core[0].bias.requires_grad_(False)
    before = {name: value.clone() for name, value in core.state_dict().items()}
    strides = core[1].weight.stride()
    optimizer = torch.optim.AdamW(core.parameters(), lr=0.1)
    sharing = part_optimizer(core, optimizer, 1, 2)
    assert core[1].weight.stride() == strides
    for name, value in core.state_dict().items():
        assert torch.equal(value, before[name])
    for weight in core.parameters():
        weight.grad = torch.ones_like(weight) if weight.requires_grad else None
    optimizer.step()
    # 16 numbers of the convolution's weight on seat 0; 12 and 2 on seat 1; what is not trained on none.
    assert sent == [(16, 0), (14, 1)]
    changed = {name for name, value in core.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"0.weight", "1.bias"}
    assert {tuple(weight.shape) for weight in optimizer.state} == {(3, 4), (2,)}
    whole = {"model": {}, "optimizer": {"state": {key: {"step": 1} for key in before}, "groups": []}, "progress": {}}
    assert set(sharing.part(whole)["optimizer"]["state"]) == {"0.weight", "1.bias"}
