"""Where sharded networks sit, and what they cannot have; pure arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

from escala.strategies import strategy
from escala.terms.errors import Unfit
from escala.terms.experiment import ExecutionSpec, StrategyOptions
from escala.terms.host import Device, Host
from escala.terms.trial import Seat, StrategyUse

HOST = Host("c", 8, 1, "s", (Device("cuda", 0, "GPU", 1), Device("cuda", 1, "GPU", 1), Device("mps", 0, "GPU", 1)))


def seats(
    name: str, ways: int, device: str = "cpu", execution: ExecutionSpec | None = None, **options: Any
) -> tuple[Seat, ...]:
    use = StrategyUse(name, ways, device, simulate=True, options=StrategyOptions(**options))
    return strategy(use).seats(HOST, 64, execution or ExecutionSpec())


@pytest.mark.parametrize(("name", "ways"), [("zero1", 2), ("fsdp", 3), ("hsdp", 4), ("hsdp", 6)])
def test_every_seat_has_rows_of_its_own(name: str, ways: int) -> None:
    assert seats(name, ways) == seats("ddp", ways)
    assert strategy(StrategyUse(name, ways, "cpu")).shares == ways


def test_a_mesh_must_be_a_product_with_two_seats_in_each_replica() -> None:
    assert len(seats("hsdp", 6, replicas=3)) == 6
    with pytest.raises(Unfit, match="ways = 6 is not 4 replicas x so many; nearest: ways = 8"):
        seats("hsdp", 6, replicas=4)
    with pytest.raises(Unfit, match="ways = 2 is not 2 replicas x so many; nearest: ways = 4"):
        seats("hsdp", 2)
    with pytest.raises(Unfit, match="one replica is fsdp"):
        seats("hsdp", 4, replicas=1)


@pytest.mark.parametrize("name", ["fsdp", "hsdp"])
@pytest.mark.parametrize(
    ("device", "execution", "options", "reason"),
    [
        ("mps", ExecutionSpec(), {}, "mps has none of them"),
        ("cuda", ExecutionSpec(), {}, "seats that share a cuda device"),
        ("cpu", ExecutionSpec(transport="shm"), {}, "transport = shm adds up whole gradients"),
        ("cpu", ExecutionSpec(compression="fp16"), {}, "meet without DDP, so compression = fp16"),
        ("cpu", ExecutionSpec("fp8"), {}, "fp8 keeps scales"),
        ("cpu", ExecutionSpec("fp32"), {"narrow": True}, "precision = bf16; this is fp32"),
        ("cpu", ExecutionSpec(), {"offload": "cpu"}, "they lie there anyway"),
    ],
)
def test_what_cannot_be_had_is_said(
    name: str, device: str, execution: ExecutionSpec, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(Unfit, match=reason):
        seats(name, 4, device, execution, **options)


def test_offloading_does_not_go_with_fp16_but_with_bf16() -> None:
    two = StrategyUse("fsdp", 2, "cuda", options=StrategyOptions(offload="cpu"))
    assert len(strategy(two).seats(HOST, 64, ExecutionSpec("bf16"))) == 2
    with pytest.raises(Unfit, match="gradients of fp16 are not unscaled"):
        strategy(two).seats(HOST, 64, ExecutionSpec("fp16"))
    with pytest.raises(Unfit, match="transport = gloo is for gradients in the host's memory; cuda"):
        strategy(two).seats(HOST, 64, ExecutionSpec(transport="gloo"))
