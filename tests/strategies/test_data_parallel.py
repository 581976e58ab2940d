"""How DataParallel cuts a batch, and what becomes of the loss. Its replicas are stood in for: they ask for GPUs."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from escala.strategies import strategy
from escala.strategies.base import PLAIN
from escala.strategies.data_parallel import check_outputs
from escala.strategies.learner import Learner, assemble
from escala.strategies.seating import chunks
from escala.terms.errors import EscalaError, Unfit
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Device, Host
from escala.terms.trial import Seat, StrategyUse
from escala.workloads import workload

FOUR = Host("c", 8, 1, "s", tuple(Device("cuda", index, "GPU", 1) for index in range(4)))


class StandIn(nn.Module):
    """Cuts, computes and puts together as nn.DataParallel does, but each piece in turn on the CPU."""

    def __init__(self, module: nn.Module, ways: int) -> None:
        super().__init__()
        self.module, self._ways = module, ways
        self.cuts = list[tuple[int, ...]]()

    def forward(self, inputs: Tensor) -> Tensor:
        pieces = inputs.chunk(self._ways)
        self.cuts.append(tuple(len(piece) for piece in pieces))
        outputs = [self.module(piece) for piece in pieces]
        # torch's gather makes a vector of numbers.
        return torch.stack(outputs) if outputs[0].ndim == 0 else torch.cat(outputs)


@pytest.mark.parametrize(
    ("rows", "ways", "cut"),
    [(5, 4, (2, 2, 1)), (6, 4, (2, 2, 2)), (9, 4, (3, 3, 3)), (10, 4, (3, 3, 3, 1)), (1, 4, (1,)), (8, 1, (8,))],
)
def test_pieces_are_those_of_torch(rows: int, ways: int, cut: tuple[int, ...]) -> None:
    assert chunks(rows, ways) == cut


@given(st.integers(1, 500), st.integers(1, 20))
def test_any_batch_is_cut_as_torch_cuts_it(rows: int, ways: int) -> None:
    assert chunks(rows, ways) == tuple(len(piece) for piece in torch.arange(rows).chunk(ways))


@pytest.mark.parametrize(
    ("batch", "microbatch", "told"),
    [
        (9, None, "9 rows into 3 pieces, of which 1 of its 4 .*nearest: 8 or 10 rows"),
        (5, None, "5 rows into 3 pieces, of which 1 of its 4 .*nearest: 4 or 7 rows"),
        (3, None, "3 rows into 3 pieces, of which 1 of its 4 .*nearest: 4 rows"),
        (20, 5, "5 rows into 3 pieces"),
    ],
)
def test_a_batch_that_leaves_a_device_idle_in_every_step_is_no_fit(
    batch: int, microbatch: int | None, told: str
) -> None:
    four = strategy(StrategyUse("data-parallel", 4, "cuda"))
    with pytest.raises(Unfit, match=told):
        four.seats(FOUR, batch, ExecutionSpec(microbatch=microbatch))
    # The nearest do fit, and so does a batch whose pieces are merely unequal.
    for fitting in (4, 7, 8, 10, 64, 67):
        assert four.seats(FOUR, fitting, PLAIN)[0].rows == (0, fitting)


def learner(ways: int, batch: int) -> tuple[Learner, StandIn]:
    work = workload("normed:plain", {})
    torch.manual_seed(1)
    made = list[StandIn]()

    def wrap(placed: nn.Module) -> nn.Module:
        made.append(StandIn(placed, ways))
        made[0].register_forward_hook(check_outputs)
        return made[0]

    train, seat = TrainSpec(batch=batch, lr=0.1), Seat(0, 0, ("cpu",), (0, batch), 1)
    return assemble(work, work.model(), seat, train, ExecutionSpec("fp64"), wrap=wrap, evaluate_wrapped=True), made[0]


def test_loss_and_gradient_are_weighed_by_rows_whatever_the_pieces() -> None:
    drawn = torch.Generator().manual_seed(2)
    # Whole batches and a last one that is shorter, of which one leaves two devices idle.
    sizes = (10, 10, 5, 1)
    many, one = learner(4, 10), learner(1, 10)
    for size in sizes:
        rows = torch.randn(size, 784, generator=drawn, dtype=torch.float64)
        targets = torch.arange(size) % 10
        losses = [which.step(rows, targets, size, size) for which, _ in (many, one)]
        assert losses[0].ndim == 0
        torch.testing.assert_close(*losses, rtol=1e-12, atol=0)
    assert many[1].cuts == [chunks(size, 4) for size in sizes]
    for name, value in one[0].state()["model"].items():
        torch.testing.assert_close(many[0].state()["model"][name], value, rtol=1e-10, atol=1e-12)
    judged = torch.randn(9, 784, generator=drawn, dtype=torch.float64)
    torch.testing.assert_close(many[0].predict(judged), one[0].predict(judged))


@pytest.mark.parametrize("rows", [9, 5])
def test_a_loss_that_each_replica_takes_for_itself_is_refused(rows: int) -> None:
    class Losing(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            return inputs.square().mean()

    wrapped = StandIn(Losing(), 4)
    wrapped.register_forward_hook(check_outputs)
    inputs = torch.arange(float(rows))[:, None]
    with pytest.raises(EscalaError, match=r"MODEL-OUTPUTS.*shape \[3\] for \d rows.*Workload.loss") as caught:
        wrapped(inputs)
    assert caught.value.exit == 3


def test_the_mean_of_unequal_pieces_would_be_another() -> None:
    """Why it is refused."""
    inputs = torch.arange(5.0)
    assert torch.stack([piece.mean() for piece in inputs.chunk(4)]).mean() != inputs.mean()


def test_replicas_cannot_draw_by_row() -> None:
    two = strategy(StrategyUse("data-parallel", 2, "cuda"))
    with pytest.raises(Unfit, match=r"random = row.*use ddp"):
        two.seats(FOUR, 64, ExecutionSpec(random="row"))
    one = strategy(StrategyUse("data-parallel", 1, "cuda"))
    assert one.seats(FOUR, 64, ExecutionSpec(random="row"))[0].rows == (0, 64)


@pytest.mark.parametrize("transport", ["shm", "gloo"])
def test_one_process_has_no_transport(transport: Literal["gloo", "shm"]) -> None:
    with pytest.raises(Unfit, match=f"exchanges nothing by transport = {transport}"):
        strategy(StrategyUse("data-parallel", 2, "cuda")).seats(FOUR, 64, ExecutionSpec(transport=transport))
