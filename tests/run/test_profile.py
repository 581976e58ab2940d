"""Where the time of a step goes, from events that a profiler could have seen, and from one that did."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from torch._C._autograd import DeviceType

from escala.run.profile import looked_at, shares_of

WINDOW = "escala: profiled steps"


def event(name: str, begin: float, end: float, *, device: bool = False, mark: bool = False) -> Any:
    kind = DeviceType.CUDA if device else DeviceType.CPU
    time = SimpleNamespace(start=begin, end=end)
    return SimpleNamespace(name=name, device_type=kind, is_user_annotation=mark, time_range=time)


def test_of_long_steps_few_are_looked_at() -> None:
    assert [looked_at(steps) for steps in (1, 2, 4, 5, 100)] == [4, 8, 16, 20, 20]


def test_on_a_processor_operators_work_and_gloo_exchanges() -> None:
    found = shares_of(
        [
            event(WINDOW, 100, 200, mark=True),
            event("aten::mm", 90, 120),
            event("aten::addmm", 120, 150),
            event("aten::t", 125, 130),
            event("autograd::engine::evaluate_function: AddmmBackward0", 150, 200),
            event("gloo:all_reduce", 140, 180, mark=True),
        ],
        rank=1,
        where="cpu",
        steps=3,
    )
    assert (found.rank, found.where, found.steps) == (1, "cpu", 3)
    assert found.work == pytest.approx(0.5)
    assert found.exchange == pytest.approx(0.3)
    assert found.idle == pytest.approx(0.2)
    assert found.hidden == pytest.approx(0.1)


def test_on_an_accelerator_only_what_runs_there_counts() -> None:
    found = shares_of(
        [
            event(WINDOW, 0, 100, mark=True),
            event("aten::mm", 0, 100),
            event(WINDOW, 5, 95, device=True, mark=True),
            event("nccl:all_reduce", 40, 90, device=True, mark=True),
            event("gemm_kernel", 10, 50, device=True),
            event("Memcpy HtoD", 45, 60, device=True),
            event("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 40, 80, device=True),
        ],
        rank=0,
        where="cuda:0",
        steps=1,
    )
    assert found.work == pytest.approx(0.5)
    assert found.exchange == pytest.approx(0.2)
    assert found.idle == pytest.approx(0.3)
    assert found.hidden == pytest.approx(0.2)


def test_a_window_that_was_lost_is_told() -> None:
    with pytest.raises(RuntimeError, match="lost the window"):
        shares_of([event("aten::mm", 0, 1)], rank=0, where="cpu", steps=1)
