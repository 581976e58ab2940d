"""What the boundary of CUDA graphs tells of networks that it cannot record."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path

import pytest
import torch

from escala.execution import capture
from escala.execution.capture import leave_errors_to_the_parent, recorded, recorder_on
from escala.run.failure import failure_of
from escala.terms.errors import Unfit
from escala.workloads import workload


class Runs:
    """Records by running; `spoilt`: what ending the recording raises where the work raised."""

    def __init__(self, spoilt: str = "") -> None:
        self.spoilt = spoilt

    def aside(self) -> AbstractContextManager[object]:
        return nullcontext()

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        try:
            work()
        finally:
            if self.spoilt:
                raise RuntimeError(self.spoilt)
        return work


def reading() -> None:
    raise RuntimeError("operation not permitted when stream is capturing\nCUDA kernel errors might be ...")


def test_a_step_that_cannot_be_recorded_does_not_fit_and_its_line_is_named() -> None:
    line = reading.__code__.co_firstlineno + 1
    with pytest.raises(Unfit) as raised:
        recorded(Runs(), reading)
    where = f"cannot be captured at {Path(__file__).name}:{line}: operation not permitted when stream is capturing"
    assert str(raised.value) == f"this network's step {where}"
    assert failure_of(raised.value, ("cpu",)).outcome == "unfit"


def test_what_went_wrong_first_is_told_and_not_what_followed() -> None:
    with pytest.raises(Unfit, match=r"test_capture\.py:\d+: operation not permitted"):
        recorded(Runs("operation failed due to a previous error during capture"), reading)


def test_a_line_of_a_shipped_network_is_named_where_there_is_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    work = workload("mlp", {})
    monkeypatch.setattr(capture, "_NOT_A_NETWORKS", (*capture._NOT_A_NETWORKS, __file__))
    step = partial(work.loss, torch.rand(2, 3), torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(Unfit, match=r"cannot be captured at base\.py:\d+: "):
        recorded(Runs(), step)  # type: ignore[arg-type]


def test_running_out_of_memory_stays_what_it_is() -> None:
    def greedy() -> None:
        raise torch.OutOfMemoryError("no more")

    with pytest.raises(torch.OutOfMemoryError):
        recorded(Runs(), greedy)


@pytest.mark.parametrize("draw", [random.random, lambda: torch.rand(1)])
def test_draws_of_the_host_would_be_drawn_once(draw: Callable[[], object]) -> None:
    with pytest.raises(Unfit, match="draws random numbers on the host"):
        recorded(Runs(), lambda: draw() and None)  # type: ignore[func-returns-value]
    assert recorded(Runs(), lambda: None)() is None  # type: ignore[func-returns-value]


def test_processors_have_no_graphs() -> None:
    with pytest.raises(Unfit, match="cpu has none"):
        recorder_on(torch.device("cpu"))


def test_nccl_is_told_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", raising=False)
    monkeypatch.setattr("os.environ", given := dict[str, str]())
    leave_errors_to_the_parent()
    assert given == {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "0"}
