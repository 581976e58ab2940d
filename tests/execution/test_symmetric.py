"""Memory that cards have in common, where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist
from torch.distributed import _symmetric_memory

from escala.execution.symmetric import symmetric
from escala.terms.errors import EscalaError


@pytest.fixture(autouse=True)
def alone(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize(("counted", "outside"), [(0, 64), (64, 0), (512, 0)])
def test_what_the_allocator_does_not_count_is_told(
    counted: int, outside: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def empty(size: int, **how: object) -> torch.Tensor:
        allocated.append(counted)
        return torch.full((size,), 9, dtype=torch.uint8)

    def areas(rank: int, sizes: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        return torch.zeros(sizes, dtype=dtype)

    allocated = [0]
    handle = SimpleNamespace(get_buffer=areas, barrier=allocated.append)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: allocated[-1])
    monkeypatch.setattr(_symmetric_memory, "empty", empty)
    monkeypatch.setattr(_symmetric_memory, "rendezvous", lambda *_: handle)
    found = symmetric(torch.device("cpu"), 64, 0)
    assert found.outside == outside
    assert [area.tolist() for area in found.areas] == [[0] * 64]
    assert found.meet == handle.barrier


def test_cards_that_do_not_reach_each_other_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no peer access from 0 to 1\nmore lines")

    monkeypatch.setattr(_symmetric_memory, "empty", torch.empty)
    monkeypatch.setattr(_symmetric_memory, "rendezvous", refuse)
    with pytest.raises(EscalaError, match=r"ENV-P2P.*cpu.*no peer access from 0 to 1") as told:
        symmetric(torch.device("cpu"), 64, 2)
    assert "more lines" not in str(told.value)
    assert "leave execution.transport out" in str(told.value)
