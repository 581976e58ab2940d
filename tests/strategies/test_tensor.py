"""Where the seats of tensor parallelism sit, and what they cannot do."""

from __future__ import annotations

from typing import Any

import pytest

from escala.strategies import strategy
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, StrategyOptions
from escala.terms.host import Device, Host
from escala.terms.trial import Seat, StrategyUse


def host(cores: int = 8, gpus: int = 0) -> Host:
    cards = tuple(Device("cuda", index, "GPU", 1) for index in range(gpus))
    return Host(cpu="c", cores=cores, memory_bytes=1, system="s", devices=cards)


def seats(ways: int, replicas: int | None = None, device: str = "cpu", **execution: Any) -> tuple[Seat, ...]:
    use = StrategyUse("tensor", ways, device, options=StrategyOptions(replicas=replicas))
    return strategy(use).seats(host(gpus=4), 62, ExecutionSpec(**execution))


def test_parts_of_one_replica_see_all_rows_and_one_tells() -> None:
    found = seats(3)
    assert [seat.rows for seat in found] == [(0, 62)] * 3
    assert [seat.share for seat in found] == [0, 0, 0]
    assert [seat.tells for seat in found] == [True, False, False]
    assert strategy(StrategyUse("tensor", 3, "cpu")).shares == 1


def test_replicas_divide_the_rows_and_neighbours_share_theirs() -> None:
    found = seats(6, 2)
    assert [seat.rows for seat in found] == [(0, 31)] * 3 + [(31, 62)] * 3
    assert [seat.share for seat in found] == [0, 0, 0, 1, 1, 1]
    assert [seat.tells for seat in found] == [True, False, False] * 2
    assert [seat.rows for seat in seats(4, 2, batchnorm="ghost:16")] == [(0, 32)] * 2 + [(32, 62)] * 2


@pytest.mark.parametrize(("ways", "replicas", "nearest"), [(1, None, 2), (5, 2, 4), (2, 2, 4), (3, 2, 4)])
def test_seats_that_make_no_mesh_are_told_the_nearest_number_that_does(
    ways: int, replicas: int | None, nearest: int
) -> None:
    with pytest.raises(Unfit, match=f"{ways} seats are not {replicas or 1} x so many; nearest: ways = {nearest}"):
        seats(ways, replicas)


@pytest.mark.parametrize(
    ("execution", "why"),
    [
        ({"precision": "fp16"}, "fp16 keeps one scale.*use bf16"),
        ({"precision": "fp8"}, "fp8 keeps scales beside whole weights.*use bf16"),
        ({"dropout_kernel": "packed"}, "drop by row, which has numbers of its own"),
        ({"random": "seat"}, "random = seat has each seat draw for itself.*use row"),
        ({"transport": "shm"}, "transport = shm adds up whole gradients"),
        ({"bucket_mb": 1.0}, "bucket_mb = 1 would change nothing"),
    ],
)
def test_what_parts_of_layers_cannot_do(execution: dict[str, Any], why: str) -> None:
    with pytest.raises(Unfit, match=why):
        seats(2, **execution)


def test_statistics_of_all_seats_would_count_rows_twice_across_replicas() -> None:
    assert seats(2, batchnorm="sync")
    with pytest.raises(Unfit, match="batchnorm = sync goes over all seats"):
        seats(4, 2, batchnorm="sync")


def test_devices_that_cannot_exchange_parts() -> None:
    with pytest.raises(Unfit, match="mps has none of them"):
        seats(2, device="mps")
    shared = StrategyUse("tensor", 2, "cuda", simulate=True)
    with pytest.raises(Unfit, match="share a cuda device meet through gloo"):
        strategy(shared).seats(host(gpus=1), 62)
    assert [seat.devices for seat in seats(4, device="cuda")] == [(f"cuda:{number}",) for number in range(4)]


@pytest.mark.parametrize(
    ("options", "ways", "why"),
    [
        ({"reshard": False}, 2, "reshard says how shards are gathered.*set shard = true"),
        ({"replicas": 2, "prefetch": 1}, 4, "prefetch says how shards are gathered"),
        ({"narrow": True}, 2, "narrow says how shards are gathered"),
        ({"shard": True}, 2, "over the replicas, and there is one; set replicas to 2"),
        ({"shard": True, "replicas": 2, "narrow": True}, 4, "16 bits of precision = bf16; this is fp32"),
    ],
)
def test_shards_need_replicas_and_their_options_need_shards(options: dict[str, Any], ways: int, why: str) -> None:
    use = StrategyUse("tensor", ways, "cpu", options=StrategyOptions(**options))
    with pytest.raises(Unfit, match=why):
        strategy(use).seats(host(), 62)


def test_sharded_replicas_sit_as_others_do() -> None:
    plain, sharded = (StrategyOptions(replicas=2, shard=shard, reshard=not shard) for shard in (False, True))
    with_shards = StrategyUse("tensor", 4, "cpu", options=sharded)
    assert strategy(with_shards).seats(host(), 62) == strategy(StrategyUse("tensor", 4, "cpu", options=plain)).seats(
        host(), 62
    )
