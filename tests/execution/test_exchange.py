from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from escala.execution.exchange import POWERSGD_START, asked, ddp_arguments
from escala.strategies import strategy
from escala.strategies.learner import Learner
from escala.terms.errors import Unfit
from escala.terms.experiment import Compression, ExecutionSpec, TrainSpec
from escala.terms.host import Device, Host
from escala.terms.trial import Seat, StrategyUse
from escala.workloads import workload

HOST = Host(
    cpu="c", cores=4, memory_bytes=1, system="s", devices=tuple(Device("cuda", index, "g", 1) for index in range(2))
)
BATCH = 8
PLAIN = ExecutionSpec()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def learner(execution: ExecutionSpec) -> Learner:
    torch.manual_seed(0)
    work = workload("normed:plain", {})
    train = TrainSpec(batch=BATCH, lr=0.1)
    return strategy(StrategyUse("ddp", 1, "cpu")).build(
        work, work.model(), Seat(0, 0, ("cpu",), (0, BATCH), 1), train, execution
    )


def weights_after(execution: ExecutionSpec, steps: int) -> Tensor:
    made = learner(execution)
    drawn = torch.Generator().manual_seed(1)
    for _ in range(steps):
        inputs = torch.rand(BATCH, 1, 28, 28, generator=drawn)
        made.step(inputs, torch.arange(BATCH) % 10, BATCH, BATCH)
    return torch.cat([value.flatten() for value in made.core.parameters()]).detach()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("compression", "most"), [("fp16", 1e-3), ("powersgd", 0.2)])
def test_compressed_gradients_are_close_and_not_the_same(compression: Compression, most: float) -> None:
    steps = POWERSGD_START + 5
    plain = weights_after(ExecutionSpec(), steps)
    other = weights_after(ExecutionSpec(compression=compression), steps)
    went = torch.linalg.vector_norm(plain - weights_after(PLAIN, 0))
    assert 0 < torch.linalg.vector_norm(other - plain) / went < most


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("execution", [ExecutionSpec(bucket_mb=0.01), ExecutionSpec(static_graph=True)])
def test_buckets_and_a_static_graph_change_nothing(execution: ExecutionSpec) -> None:
    torch.testing.assert_close(weights_after(execution, 3), weights_after(PLAIN, 3))


def test_only_what_was_asked_for_is_passed_on() -> None:
    assert ddp_arguments(ExecutionSpec()) == {}
    assert ddp_arguments(ExecutionSpec(bucket_mb=2.5, static_graph=True)) == {
        "bucket_cap_mb": 2.5,
        "static_graph": True,
    }
    assert asked(ExecutionSpec(bucket_mb=2.5, compression="fp16", static_graph=True)) == (
        "bucket_mb = 2.5",
        "compression = fp16",
        "static_graph = true",
    )


def test_strategies_without_such_an_exchange_do_not_fit() -> None:
    with pytest.raises(
        Unfit, match=r"single exchanges nothing, so bucket_mb = 5 would .* only ddp and zero1 take it"
    ):
        strategy(StrategyUse("single", 1, "cpu")).seats(HOST, 8, ExecutionSpec(bucket_mb=5))
    with pytest.raises(Unfit, match=r"one process, so compression = fp16 and static_graph = true .* take them"):
        strategy(StrategyUse("data-parallel", 2, "cuda")).seats(
            HOST, 8, ExecutionSpec(compression="fp16", static_graph=True)
        )
    assert strategy(StrategyUse("ddp", 2, "cpu")).seats(HOST, 8, ExecutionSpec(compression="fp16", bucket_mb=1))


def test_what_ddp_cannot_do_together_does_not_fit() -> None:
    use = StrategyUse("ddp", 2, "cpu")
    with pytest.raises(Unfit, match=r"the first of which holds 1 MiB; bucket_mb = 0.5 is less"):
        strategy(use).seats(HOST, 8, ExecutionSpec(compile=True, bucket_mb=0.5))
    with pytest.raises(Unfit, match="static_graph and microbatches"):
        strategy(use).seats(HOST, 8, ExecutionSpec(static_graph=True, microbatch=2))
    assert strategy(use).seats(HOST, 8, ExecutionSpec(compile=True, bucket_mb=1, static_graph=True))
    assert strategy(use).seats(HOST, 8, ExecutionSpec(bucket_mb=0.5, microbatch=2))


def test_gradients_of_bfloat16_need_a_device_that_sends_them() -> None:
    with pytest.raises(Unfit, match="bf16 is sent by NCCL and XCCL alone, and cpu has neither"):
        strategy(StrategyUse("ddp", 2, "cpu")).seats(HOST, 8, ExecutionSpec(compression="bf16"))
    assert strategy(StrategyUse("ddp", 2, "cuda")).seats(HOST, 8, ExecutionSpec(compression="bf16"))
