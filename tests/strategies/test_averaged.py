"""Learners whose gradients go by the memory of other devices, with seats as threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Literal

import pytest
import torch
from peer_node import Node
from torch import Tensor, nn

from escala.execution import peer_sums, stepping
from escala.execution.stretches import Stretch, step_on
from escala.execution.symmetric import Symmetric
from escala.strategies import averaged, strategy
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.trial import Seat, StrategyUse
from escala.workloads import workload

BATCH, WAYS, STEPS, SMALL = 12, 2, 4, 4096


def rows(step: int) -> tuple[Tensor, Tensor]:
    drawn = torch.Generator().manual_seed(step)
    return torch.rand(BATCH, 1, 28, 28, generator=drawn), torch.randint(10, (BATCH,), generator=drawn)


def network() -> nn.Module:
    torch.manual_seed(0)
    return workload("normed:plain", {}).model()


@pytest.mark.parametrize("piece", [SMALL, peer_sums.PIECE])
@pytest.mark.parametrize("microbatch", [None, 2])
@pytest.mark.parametrize("overlap", ["backward", "optimizer"])
@pytest.mark.parametrize("clip", [None, 0.1])
def test_two_seats_learn_as_one(
    overlap: Literal["backward", "optimizer"],
    microbatch: int | None,
    piece: int,
    clip: float | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With small ones large weights arrive in stretches.
    monkeypatch.setattr(peer_sums, "PIECE", piece)
    stretches = list[Stretch]()
    monkeypatch.setattr(stepping, "step_on", lambda *given: (stretches.append(given[1]), step_on(*given)))
    node, ranks = Node(WAYS), threading.local()

    def reach(device: torch.device, size: int, lanes: int) -> Symmetric:
        return node.reach(ranks.own)(size, lanes)

    monkeypatch.setattr(averaged, "symmetric", reach)
    train = TrainSpec(batch=BATCH, lr=0.1, momentum=0.9, clip_norm=clip)
    models = [network() for _ in range(WAYS)]

    def seat(rank: int) -> list[Tensor]:
        ranks.own = rank
        share = slice(rank * BATCH // WAYS, (rank + 1) * BATCH // WAYS)
        place = Seat(rank, 0, ("cpu",), (share.start, share.stop), 1)
        execution = ExecutionSpec(transport="shm", overlap=overlap, microbatch=microbatch)
        build: Callable[..., averaged.Learner] = averaged._during_the_step
        made = build(workload("normed:plain", {}), models[rank], place, train, execution, WAYS)
        for step in range(STEPS):
            inputs, targets = rows(step)
            made.step(inputs[share], targets[share], BATCH, BATCH)
        return [weight.detach() for weight in made.core.parameters()]

    one = strategy(StrategyUse("single", 1, "cpu")).build(
        workload("normed:plain", {}), network(), Seat(0, 0, ("cpu",), (0, BATCH), 1), train, ExecutionSpec()
    )
    for step in range(STEPS):
        one.step(*rows(step), BATCH, BATCH)
    for found in node.run(seat):
        for weight, expected in zip(found, one.core.parameters(), strict=True):
            torch.testing.assert_close(weight, expected.detach(), rtol=1e-5, atol=1e-6)
    # Where all gradients decide about the step, it is made once, on all.
    assert bool(stretches) == (piece == SMALL and clip is None)
