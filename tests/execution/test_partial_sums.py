"""Gradients that are added up part by part while the optimiser steps."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from escala.execution.exchange import check_exchange
from escala.execution.partial_sums import PARTS, PartialSums, in_parts
from escala.execution.stepping import step_by_part
from escala.strategies import strategy
from escala.terms.errors import EscalaError, Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.trial import Seat, StrategyUse
from escala.workloads import workload

BATCH = 8


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@given(st.lists(st.tuples(st.integers(1, 500), st.sampled_from([torch.float32, torch.float64])), max_size=30))
def test_parts_hold_every_parameter_once_and_one_type_each(sizes: list[tuple[int, torch.dtype]]) -> None:
    weights = [nn.Parameter(torch.empty(size, dtype=dtype)) for size, dtype in sizes]
    parts = in_parts(weights, 4)
    place = {id(one): number for number, one in enumerate(weights)}
    places = [[place[id(one)] for one in part] for part in parts]
    assert sorted(itertools.chain.from_iterable(places)) == list(range(len(weights)))
    assert all(part == sorted(part) for part in places)
    assert places == sorted(places)
    assert all(len({one.dtype for one in part}) == 1 for part in parts)
    if len({dtype for _, dtype in sizes}) == 1:
        room = sum(one.nbytes for one in weights) / 4
        assert all(sum(one.nbytes for one in part) <= 2 * room for part in parts if len(part) > 1)
        assert len(parts) <= 9


def test_a_large_weight_goes_by_itself() -> None:
    weights = [nn.Parameter(torch.empty(size)) for size in (1000, 10, 10, 10)]
    assert [len(part) for part in in_parts(weights, PARTS)] == [1, 3]
    # What lies on both sides of it does not meet twice.
    assert [len(part) for part in in_parts([weights[1], weights[0], *weights[2:]], PARTS)] == [3, 1]


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_steps_on_parts_are_one_step_on_all(kind: type[torch.optim.Optimizer]) -> None:
    def trained(*, by_part: bool) -> list[nn.Parameter]:
        torch.manual_seed(0)
        weights = [nn.Parameter(torch.rand(3)) for _ in range(4)]
        optimizer = kind(weights, lr=0.1, weight_decay=0.01)  # type: ignore[call-arg]
        for _ in range(3):
            for weight in weights:
                weight.grad = torch.rand(3)
            pairs = [(weight, weight.grad) for weight in weights if weight.grad is not None]
            if by_part:
                step_by_part(optimizer, weights, iter([pairs[:1], pairs[1:]]))
                assert all(weight.grad is gradient for weight, gradient in pairs)
            else:
                optimizer.step()
        return weights

    for one, other in zip(trained(by_part=True), trained(by_part=False), strict=True):
        assert torch.equal(one, other)


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("train", [TrainSpec(batch=BATCH, lr=0.1), TrainSpec(batch=BATCH, lr=0.1, clip_norm=0.1)])
def test_one_seat_learns_as_without(train: TrainSpec) -> None:
    def weights(use: StrategyUse, execution: ExecutionSpec) -> list[torch.Tensor]:
        torch.manual_seed(0)
        work = workload("normed:plain", {})
        seat = Seat(0, 0, ("cpu",), (0, BATCH), 1)
        made = strategy(use).build(work, work.model(), seat, train, execution)
        for _ in range(4):
            made.step(torch.rand(BATCH, 1, 28, 28), torch.arange(BATCH) % 10, BATCH, BATCH)
        return list(made.core.parameters())

    found = weights(StrategyUse("ddp", 1, "cpu"), ExecutionSpec(overlap="optimizer"))
    plain = weights(StrategyUse("single", 1, "cpu"), ExecutionSpec())
    for one, other in zip(found, plain, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.usefixtures("alone")
def test_what_cannot_be_added_up_is_told() -> None:
    weight = nn.Parameter(torch.rand(3, 2))
    sums = PartialSums([weight], 0)
    with pytest.raises(EscalaError, match=r"MODEL-UNUSED.*\(3, 2\)") as unused:
        sums()
    assert "execution.overlap" in str(unused.value)
    nn.functional.embedding(torch.tensor([1]), weight, sparse=True).sum().backward()
    with pytest.raises(EscalaError, match="MODEL-SPARSE"):
        sums()


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"bucket_mb": 5.0}, "bucket_mb = 5 and overlap = optimizer: the last exchanges without DDP"),
        ({"compression": "fp16"}, "compression = fp16 and overlap"),
        ({"static_graph": True}, "static_graph = true and overlap"),
        ({"unused": "detect"}, "unused = detect is DDP's"),
    ],
)
def test_it_does_not_go_with_what_is_of_ddp(more: dict[str, object], told: str) -> None:
    with pytest.raises(Unfit, match=told):
        check_exchange(ExecutionSpec(overlap="optimizer", **more), "cuda")  # type: ignore[arg-type]
