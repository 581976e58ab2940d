from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.execution.blocks import blocks
from escala.strategies import STRATEGIES, strategy
from escala.strategies.seating import divide, pieces, places, share_of, threads_per_seat
from escala.terms.errors import EscalaError, Unfit
from escala.terms.experiment import ExecutionSpec
from escala.terms.host import Device, Host
from escala.terms.trial import Seat, StrategyUse


def host(cores: int = 2, gpus: int = 0, nodes: int = 1, seats_per_node: int | None = None) -> Host:
    cards = tuple(Device("cuda", index, "GPU", 1) for index in range(gpus))
    return Host(
        cpu="c", cores=cores, memory_bytes=1, system="s", devices=cards, nodes=nodes, seats_per_node=seats_per_node
    )


@given(st.integers(1, 10_000), st.integers(1, 64))
def test_division_tiles_the_batch_evenly(batch: int, ways: int) -> None:
    parts = divide(batch, ways)
    assert [part[0] for part in parts] == [0, *(part[1] for part in parts[:-1])]
    assert parts[-1][1] == batch
    sizes = [stop - start for start, stop in parts]
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 2_000), st.integers(1, 16), st.integers(1, 70), st.data())
def test_shares_of_a_short_batch_tile_it(batch: int, ways: int, unit: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, batch))
    shares = [share_of(rows, batch, size, unit) for rows in divide(batch, ways, unit)]
    seen = [row for share in shares for row in range(share.start, share.stop)]
    assert seen == list(range(size))
    assert all(share.start % unit == 0 or share.start == size for share in shares)


@given(st.integers(1, 2_000), st.integers(1, 16), st.integers(2, 70))
def test_division_keeps_blocks_whole(batch: int, ways: int, unit: int) -> None:
    parts = divide(batch, ways, unit)
    assert [part[0] for part in parts] == [0, *(part[1] for part in parts[:-1])]
    assert parts[-1][1] == batch
    assert all(start % unit == 0 or start == batch for start, _ in parts)
    # Nobody gets a lone row, and nobody goes without where there are blocks enough.
    assert batch == 1 or all(stop - start != 1 for start, stop in parts)
    assert all(stop > start for start, stop in parts) == (blocks(batch, unit) >= ways)


@given(st.integers(0, 500), st.integers(1, 100), st.integers(1, 40))
def test_pieces_tile_a_share_between_blocks(rows: int, most: int, unit: int) -> None:
    cuts = pieces(rows, most, unit)
    assert [row for cut in cuts for row in range(cut.start, cut.stop)] == list(range(rows))
    assert all(cut.start % unit == 0 for cut in cuts)
    assert all(cut.stop - cut.start <= max(most, unit) + (unit > 1) for cut in cuts)


def test_ghosts_stay_whole_on_seats_and_are_not_for_replicas() -> None:
    ghosts = ExecutionSpec(batchnorm="ghost:8")
    seats = strategy(StrategyUse("ddp", 3, "cpu")).seats(host(cores=4), 63, ghosts)
    assert [seat.rows for seat in seats] == [(0, 16), (16, 40), (40, 63)]
    assert strategy(StrategyUse("single", 1, "cpu")).seats(host(), 63, ghosts)[0].rows == (0, 63)
    one = strategy(StrategyUse("data-parallel", 1, "cuda"))
    assert one.seats(host(gpus=2), 64, ghosts)[0].rows == (0, 64)
    for choice in ("ghost:8", "sync"):
        with pytest.raises(Unfit, match=f"batchnorm = {choice}.*use ddp"):
            strategy(StrategyUse("data-parallel", 2, "cuda")).seats(host(gpus=2), 64, ExecutionSpec(batchnorm=choice))


@given(st.integers(1, 256), st.integers(1, 64))
def test_threads_never_exceed_the_cores_and_are_never_none(cores: int, seats: int) -> None:
    for kind in ("cpu", "cuda"):
        threads = threads_per_seat(host(cores), seats, kind)
        assert threads >= 1
        assert threads * seats <= max(cores, seats)


def test_a_seat_that_feeds_an_accelerator_gets_few_threads() -> None:
    assert threads_per_seat(host(64), 1, "cuda") == threads_per_seat(host(64), 4, "cuda") == 4
    assert threads_per_seat(host(64), 1, "cpu") == 64


def test_one_rule_for_threads_for_one_seat_as_for_many() -> None:
    on_eight = {ways: strategy(StrategyUse("ddp", ways, "cpu")).seats(host(8), 64) for ways in (1, 2, 4)}
    assert {ways: {seat.threads for seat in seats} for ways, seats in on_eight.items()} == {1: {8}, 2: {4}, 4: {2}}
    assert strategy(StrategyUse("single", 1, "cpu")).seats(host(8), 64)[0].threads == 8


def test_more_ways_than_devices_do_not_fit() -> None:
    with pytest.raises(Unfit, match="needs 2 cuda devices; this host has 1"):
        strategy(StrategyUse("ddp", 2, "cuda")).seats(host(gpus=1), 64)
    with pytest.raises(Unfit, match="needs a cuda device; this host has none"):
        strategy(StrategyUse("single", 1, "cuda")).seats(host(), 64)
    with pytest.raises(Unfit, match="needs 3 CPU cores; this host has 2"):
        strategy(StrategyUse("ddp", 3, "cpu")).seats(host(), 64)


def test_simulated_seats_share_the_devices_there_are() -> None:
    seats = strategy(StrategyUse("ddp", 4, "cuda", simulate=True)).seats(host(gpus=2, cores=8), 64)
    assert [seat.devices for seat in seats] == [("cuda:0",), ("cuda:1",), ("cuda:0",), ("cuda:1",)]
    assert [seat.rows for seat in seats] == [(0, 16), (16, 32), (32, 48), (48, 64)]


def test_simulating_what_fits_anyway_shares_nothing() -> None:
    seats = strategy(StrategyUse("ddp", 2, "cuda", simulate=True)).seats(host(gpus=2), 64)
    assert [seat.devices for seat in seats] == [("cuda:0",), ("cuda:1",)]


def test_data_parallel_has_one_seat_with_all_devices_and_no_meaning_on_a_cpu() -> None:
    (seat,) = strategy(StrategyUse("data-parallel", 2, "cuda")).seats(host(gpus=4, cores=8), 64)
    assert (seat.devices, seat.rows, seat.threads) == (("cuda:0", "cuda:1"), (0, 64), 4)
    with pytest.raises(Unfit, match="on cpu it has none"):
        strategy(StrategyUse("data-parallel", 2, "cpu")).seats(host(), 64)


def test_a_seats_place_is_left_out_of_a_record_where_it_has_its_rows_to_itself() -> None:
    plain, partner = Seat(1, 0, ("cpu",), (4, 8), 2), Seat(3, 0, ("cpu",), (4, 8), 2, replica=1, tells=False)
    assert set(msgspec.to_builtins(plain)) == {"rank", "node", "devices", "rows", "threads"}
    assert msgspec.to_builtins(partner) | {"replica": 1, "tells": False} == msgspec.to_builtins(partner)
    assert (plain.share, partner.share) == (1, 1)
    assert msgspec.convert(msgspec.to_builtins(partner), Seat) == partner


def test_seats_go_to_the_next_node_when_one_is_full() -> None:
    assert places(host(gpus=4, nodes=2, seats_per_node=2), "cuda", 4, simulate=False) == (
        (0, "cuda:0"),
        (0, "cuda:1"),
        (1, "cuda:0"),
        (1, "cuda:1"),
    )


def test_single_takes_one_seat_only() -> None:
    with pytest.raises(Unfit, match="single has one seat"):
        strategy(StrategyUse("single", 2, "cpu")).seats(host(), 64)


def test_an_unknown_strategy_names_the_nearest() -> None:
    with pytest.raises(EscalaError, match="did you mean ddp") as caught:
        strategy(StrategyUse("dpp", 1, "cpu"))
    assert caught.value.code == "CFG-VALUE"


def test_names_in_the_table_are_the_fields_of_records() -> None:
    assert list(STRATEGIES) == [
        "single",
        "data-parallel",
        "ddp",
        "zero1",
        "fsdp",
        "hsdp",
        "layers",
        "pipeline",
        "tensor",
    ]


@pytest.mark.parametrize("name", ["zero1", "fsdp", "hsdp", "pipeline", "tensor"])
def test_what_nobody_has_captured_is_not_captured(name: str) -> None:
    with pytest.raises(Unfit, match="capture records steps of single and ddp"):
        strategy(StrategyUse(name, 4, "cpu")).seats(host(cores=4), 64, ExecutionSpec(capture=2))
