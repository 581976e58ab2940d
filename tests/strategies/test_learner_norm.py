"""What the learner tells layers of batch normalisation, and how often seats pass that exchange statistics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from escala.execution.piece import Piece
from escala.strategies import strategy
from escala.strategies.learner import Learner
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.trial import Seat, StrategyUse
from escala.workloads import workload

BATCH = 16


@pytest.fixture
def peers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A group of one seat that is treated as one of several."""
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    monkeypatch.setattr("escala.execution.batchnorm._have_peers", lambda: True)
    yield
    dist.destroy_process_group()


def learner(batchnorm: str, microbatch: int | None) -> tuple[Learner, list[tuple[int, int, int]]]:
    """And what it told of each pass: rows that count, of how many, in which step."""
    work = workload("normed:rows", {})
    seat = Seat(0, 0, ("cpu",), (0, BATCH), 1)
    torch.manual_seed(0)
    execution = ExecutionSpec("fp64", batchnorm=batchnorm, microbatch=microbatch)
    made = strategy(StrategyUse("single", 1, "cpu")).build(
        work, work.model(), seat, TrainSpec(batch=BATCH), execution
    )
    told = list[tuple[int, int, int]]()

    def note(layer: nn.Module, _: tuple[Tensor, ...]) -> None:
        piece = layer.piece
        assert isinstance(piece, Piece)
        told.append((piece.rows, piece.of, piece.step))

    made.core[2].register_forward_pre_hook(note)  # type: ignore[index,union-attr]
    return made, told


def rows(many: int) -> tuple[Tensor, Tensor]:
    drawn = torch.Generator().manual_seed(many)
    return torch.randn(many, 784, generator=drawn, dtype=torch.float64), torch.arange(many) % 10


@pytest.mark.usefixtures("peers")
def test_seats_with_fewer_rows_pass_as_often_as_their_peers() -> None:
    made, told = learner("sync", 4)
    made.step(*rows(BATCH), BATCH, 2 * BATCH)
    assert told == [(4, 32, 1)] * 4
    told.clear()
    loss = made.step(*rows(6), 11, 11)
    assert told == [(4, 11, 2), (2, 11, 2), (0, 11, 2), (0, 11, 2)]
    assert 0 < loss.item() < 6 * 6
    told.clear()
    assert made.step(*rows(1), 0, 3).item() == 0.0
    assert told == [(0, 3, 3)] * 4


def test_ghosts_stay_whole_in_microbatches_and_need_no_company() -> None:
    made, told = learner("ghost:4", 4)
    made.step(*rows(9), 9, 25)
    assert told == [(4, 25, 1), (5, 25, 1)]
    told.clear()
    made.step(*rows(1), 0, 25)
    assert told == [(0, 25, 2)]


def test_a_warmed_learner_that_is_put_back_is_as_new() -> None:
    warmed, _ = learner("ghost:4", None)
    fresh, _ = learner("ghost:4", None)
    state = warmed.state()
    for many in (16, 16, 7):
        warmed.step(*rows(many), many, many)
    warmed.load(state)
    for many in (16, 11):
        assert torch.equal(warmed.step(*rows(many), many, many), fresh.step(*rows(many), many, many))
    for one in (warmed, fresh):
        one.settle(1.0, lambda part: part)
    for name, value in fresh.state()["model"].items():
        assert torch.equal(warmed.state()["model"][name], value), name
