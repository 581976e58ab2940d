"""Who sits where in a pipeline, what it cannot do, and where it cuts a network."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import normed
import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn

from escala.strategies import strategy
from escala.strategies.line import Channels, Groups, add_up_gradients, clip_over
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, StrategyOptions, TrainSpec
from escala.terms.host import Device, Host
from escala.terms.trial import Seat, StrategyUse
from escala.workloads import workload

EIGHT = Host("c", 8, 1, "s", tuple(Device("cuda", index, "GPU", 1) for index in range(8)))
PLAIN = ExecutionSpec()
NOTHING = torch.zeros(())


def seats(ways: int, execution: ExecutionSpec = PLAIN, batch: int = 64, **options: object) -> tuple[Seat, ...]:
    use = StrategyUse("pipeline", ways, "cuda", options=StrategyOptions(**options))  # type: ignore[arg-type]
    return strategy(use).seats(EIGHT, batch, execution)


def test_all_of_a_pipeline_see_its_rows_and_its_last_seat_tells() -> None:
    assert [(seat.devices, seat.rows, seat.replica, seat.tells) for seat in seats(4, replicas=2, batch=9)] == [
        (("cuda:0",), (0, 4), 0, False),
        (("cuda:1",), (0, 4), 0, True),
        (("cuda:2",), (4, 9), 1, False),
        (("cuda:3",), (4, 9), 1, True),
    ]
    assert [seat.rows for seat in seats(3)] == [(0, 64)] * 3
    # Ghosts stay whole.
    assert [seat.rows for seat in seats(4, ExecutionSpec(batchnorm="ghost:4"), 14, replicas=2)][1:3] == [
        (0, 8),
        (8, 14),
    ]


@pytest.mark.parametrize(
    ("ways", "options", "execution", "why"),
    [
        (1, {}, {}, "1 ways among 1 replicas are 1 seats each.*a multiple of 1, 2 or more"),
        (4, {"replicas": 4}, {}, "4 ways among 4 replicas are 1 seats each.*a multiple of 4, 8 or more"),
        (5, {"replicas": 2}, {}, "5 ways among 2 replicas are 2.5 seats each"),
        (2, {"chunks": 2}, {}, "chunks = 2 is for schedule = interleaved; with 1f1b"),
        (2, {"split": (1, 2, 3)}, {}, "split names 3 stages; this pipeline has 2"),
        (2, {"split": (1, 2), "schedule": "interleaved"}, {}, "split names 2 stages; this pipeline has 4"),
        (2, {"microbatches": 65}, {}, "65 microbatches of 64 rows; 64 is the most"),
        (2, {"microbatches": 9}, {"batchnorm": "ghost:8"}, "9 microbatches of 8 ghosts of 8 rows; 8 is the most"),
        (2, {"microbatches": 2}, {"microbatch": 4}, "both say how rows are cut"),
        (2, {}, {"batchnorm": "sync"}, "use ghost:N"),
        (2, {}, {"precision": "fp16"}, "use bf16"),
        (2, {}, {"transport": "shm"}, "a pipeline's seats hold parts"),
        (2, {}, {"bucket_mb": 1.0}, "bucket_mb = 1 would change nothing"),
        (16, {}, {}, "needs 16 cuda devices; this host has 8"),
    ],
)
def test_what_does_not_fit_says_why(
    ways: int, options: dict[str, object], execution: dict[str, object], why: str
) -> None:
    with pytest.raises(Unfit, match=why):
        seats(ways, ExecutionSpec(**execution), **options)  # type: ignore[arg-type]


def test_ways_are_shared_out_among_replicas_alone() -> None:
    for ways, replicas, shares, stages in ((4, None, 1, 4), (4, 2, 2, 2), (6, 3, 3, 2), (5, 2, 1, 5)):
        made = strategy(StrategyUse("pipeline", ways, "cpu", options=StrategyOptions(replicas=replicas)))
        assert (made.shares, made.stages) == (shares, stages)
    deep = StrategyOptions(schedule="interleaved", chunks=3)
    assert strategy(StrategyUse("pipeline", 2, "cpu", options=deep)).stages == 6


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def images(many: int) -> Tensor:
    return torch.randn(many, 1, 28, 28, generator=torch.Generator().manual_seed(many))


def decided(options: StrategyOptions, *, simulate: bool) -> tuple[StrategyOptions, dict[str, str]]:
    chosen = strategy(StrategyUse("pipeline", 2, "cpu", simulate, options))
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 500), nn.ReLU(), nn.Linear(500, 500), nn.Linear(500, 10))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    asked = list[int]()

    def sample(many: int) -> tuple[Tensor, Tensor]:
        asked.append(many)
        return images(many), torch.arange(many) % 10

    seat = Seat(0, 0, ("cpu",), (0, 64), 1, replica=0)
    found, notes = chosen.decide(workload("mlp", {}), model, seat, ExecutionSpec(), sample)
    assert asked == [8], "a microbatch is measured: 64 rows in 4 for each of 2 seats"
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert all(parameter.grad is None for parameter in model.parameters())
    return found.options, notes


def test_where_devices_are_shared_operations_decide_where_it_is_cut() -> None:
    options, notes = decided(StrategyOptions(), simulate=True)
    # The first wide layer alone has 61 % of the operations.
    assert options.split is not None
    assert sum(options.split[:1]) in (2, 3)
    assert notes["stages"] in ("0-1 | 2-4", "0-2 | 3-4")
    assert notes["pipeline"] == "1f1b, 8 microbatches, a bubble of 11.1% if all stages took equally long"


def test_else_a_measurement_does_and_a_given_cut_stays() -> None:
    options, _ = decided(StrategyOptions(schedule="gpipe"), simulate=False)
    assert options.split is not None
    assert sum(options.split) == 5
    assert decided(StrategyOptions(split=(4, 1)), simulate=False)[1]["stages"] == "0-3 | 4"
    with pytest.raises(Unfit, match="split names 6 blocks; the network has 5"):
        decided(StrategyOptions(split=(4, 2)), simulate=False)


def build(network: str, execution: ExecutionSpec, options: StrategyOptions) -> object:
    chosen = strategy(StrategyUse("pipeline", 2, "cpu", options=options))
    work = workload(network, {})
    return chosen.build(work, work.model(), Seat(0, 0, ("cpu",), (0, 64), 1, replica=0), TrainSpec(), execution)


def test_statistics_of_a_microbatch_are_not_those_of_the_batch() -> None:
    with pytest.raises(Unfit, match=r"batch normalisation \(2\) would go by the rows of each of 8 microbatches"):
        build("normed:rows", ExecutionSpec(), StrategyOptions(split=(4, 5)))
    assert normed.rows()[2].num_features == 24
    with pytest.raises(RuntimeError, match="once it was decided"):
        build("normed:rows", ExecutionSpec(), StrategyOptions())


@pytest.mark.usefixtures("alone")
def test_the_norm_is_that_of_all_gradients_and_counts_what_is_held_twice_once() -> None:
    one, shared = nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(2, 2))
    one.grad, shared.grad = torch.tensor([3.0, 0.0, 0.0]), torch.full((2, 2), 2.0)
    clip_over([one, shared], 10.0, counted=[one, shared], group=None, nothing=NOTHING)
    assert one.grad.norm().item() == 3
    clip_over([one, shared], 1.0, counted=[one, shared], group=None, nothing=NOTHING)
    assert torch.cat([one.grad, shared.grad.flatten()]).norm().item() == pytest.approx(1, rel=1e-5)
    one.grad, shared.grad = torch.tensor([4.0, 0.0, 0.0]), torch.full((2, 2), 2.0)
    clip_over([one, shared], 1.0, counted=[one], group=None, nothing=NOTHING)
    assert one.grad[0].item() == pytest.approx(1, rel=1e-5)
    assert shared.grad.flatten().tolist() == pytest.approx([0.5] * 4, rel=1e-5)
    # A stage without weights takes part, and leaves nothing behind.
    clip_over([], 1.0, counted=[], group=None, nothing=NOTHING)


@pytest.mark.usefixtures("alone")
def test_gradients_meet_in_their_own_layout_and_what_nobody_used_stays_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = partial(dist.all_reduce)

    def doubled(line: Tensor, **options: object) -> None:
        real(line, **options)
        if line.is_floating_point():
            line *= 2

    monkeypatch.setattr("escala.strategies.line.dist.all_reduce", doubled)
    laid = nn.Parameter(torch.zeros(2, 3, 2, 2).to(memory_format=torch.channels_last))
    laid.grad = torch.arange(24.0).reshape(2, 3, 2, 2).to(memory_format=torch.channels_last)
    double = nn.Parameter(torch.zeros(2, dtype=torch.float64))
    double.grad = torch.ones_like(double)
    unused, frozen = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2), requires_grad=False)
    group = dist.group.WORLD
    add_up_gradients([laid, double, unused, frozen], Groups(group, Channels({}, {}), group, ()), detect=True)
    assert torch.equal(laid.grad, 2 * torch.arange(24.0).reshape(2, 3, 2, 2))
    assert laid.grad.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(double.grad, torch.full_like(double, 2))
    assert unused.grad is None
    assert frozen.grad is None
    add_up_gradients([unused], Groups(group, Channels({}, {}), group, ()), detect=False)
    assert torch.equal(unused.grad, torch.zeros(2))
    # Weights of several stages are added up within each pipeline, others only across them.
    tied = nn.Parameter(torch.zeros(2))
    tied.grad = torch.ones(2)
    add_up_gradients([tied, double], Groups(group, Channels({}, {}), None, ((tied, group),)), detect=False)
    assert torch.equal(tied.grad, torch.full((2,), 2.0))
    assert torch.equal(double.grad, torch.full_like(double, 2))
