"""Which transport, thread count and binding fit where; pure arithmetic."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
import pytest

from escala.strategies import strategy
from escala.strategies.seating import with_cores
from escala.strategies.transport import check_transport
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec
from escala.terms.host import Device, Host
from escala.terms.trial import Seat, StrategyUse

HOST = Host(
    cpu="test",
    cores=4,
    memory_bytes=1,
    system="test",
    devices=(Device("cuda", 0, "GPU", 1), Device("cuda", 1, "GPU", 1)),
)


def seats(name: str = "ddp", ways: int = 2, device: str = "cpu", host: Host = HOST, **how: Any) -> tuple[Seat, ...]:
    execution = ExecutionSpec(**how)
    return with_cores(strategy(StrategyUse(name, ways, device)).seats(host, 64, execution), host, device, execution)


def test_shared_memory_changes_no_seat() -> None:
    for ways in (1, 2, 3, 4):
        assert seats(ways=ways, transport="shm") == seats(ways=ways, transport="gloo") == seats(ways=ways)
    # One seat has nobody to exchange anything with.
    assert seats("single", 1, transport="shm") == seats("single", 1)


@pytest.mark.parametrize(("transport", "device"), [("gloo", "cuda"), ("gloo", "xpu"), ("shm", "xpu")])
def test_devices_other_than_the_cpu_have_their_own_way(transport: Literal["gloo", "shm"], device: str) -> None:
    execution, places = ExecutionSpec(transport=transport), seats(device="cuda")
    with pytest.raises(Unfit, match=f"transport = {transport} is for gradients in the host's memory; {device}"):
        check_transport(execution, device, places)


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_shared_memory_ends_at_the_node(device: str) -> None:
    two = msgspec.structs.replace(HOST, cores=2, nodes=2)
    with pytest.raises(Unfit, match="joins the seats of one node; these sit on 2"):
        seats(ways=4, host=two, device=device, transport="shm")
    assert len(seats(ways=4, host=two, transport="gloo")) == 4


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize(("key", "value"), [("bucket_mb", 1.0), ("compression", "bf16"), ("static_graph", True)])
def test_what_belongs_to_ddp_does_not_go_with_shared_memory(device: str, key: str, value: Any) -> None:
    with pytest.raises(Unfit, match=f"without DDP, to which {key} = .* would belong"):
        seats(device=device, transport="shm", **{key: value})


def test_gpus_share_memory_during_the_way_back_or_the_step_and_processors_between_them() -> None:
    plain = seats(device="cuda")
    assert seats(device="cuda", transport="shm") == plain
    assert seats(device="cuda", transport="shm", overlap="optimizer") == plain
    with pytest.raises(Unfit, match="to which overlap = optimizer would belong"):
        seats(transport="shm", overlap="optimizer")


def test_gpus_share_memory_for_gradients_of_all_weights_and_steps_on_parts() -> None:
    with pytest.raises(Unfit, match="unused = detect is DDP's"):
        seats(device="cuda", transport="shm", unused="detect")
    with pytest.raises(Unfit, match="zero1's seats have a part each"):
        seats("zero1", device="cuda", transport="shm")


def test_seats_of_one_gpu_have_nothing_to_join() -> None:
    one = Seat(0, 0, ("cuda:0",), (0, 32), 1)
    with pytest.raises(Unfit, match="seats share one"):
        check_transport(ExecutionSpec(transport="shm"), "cuda", (one, msgspec.structs.replace(one, rank=1)))


def test_threads_replace_the_equal_share() -> None:
    assert [seat.threads for seat in seats()] == [2, 2]
    assert [seat.threads for seat in seats(threads=1)] == [1, 1]
    assert [seat.threads for seat in seats(threads=4)] == [4, 4]
    with pytest.raises(Unfit, match="threads = 5 is more than the 4 usable cores"):
        seats(threads=5)


def test_bound_seats_need_cores_of_their_own() -> None:
    assert seats(pin=True) == seats()
    assert seats(pin=True, threads=2) == seats()
    with pytest.raises(Unfit, match="pin = true needs 6 cores for the seats of a node; 4 are usable"):
        seats(pin=True, threads=3)
    with pytest.raises(Unfit, match="pin = true binds seats that compute on the CPU"):
        seats(device="cuda", pin=True)


def test_cores_are_counted_by_node() -> None:
    two = Host(cpu="test", cores=2, memory_bytes=1, system="test", nodes=2)
    assert [seat.threads for seat in seats(ways=4, host=two, pin=True)] == [1, 1, 1, 1]
