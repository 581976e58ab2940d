"""Families of rows over their devices, and the serial share that they show."""

from __future__ import annotations

import pytest
import recorded as made
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from escala.analyse.scaling import families, serial_share, speedup_at
from escala.analyse.summary import summarise
from escala.terms.record import Record

SHARES = st.floats(0, 1)


@given(SHARES, st.lists(st.integers(2, 64), min_size=1, max_size=5))
def test_a_planted_serial_share_is_found(share: float, ways: list[int]) -> None:
    points = [(float(count), speedup_at(count, share)) for count in ways]
    assert serial_share(points) == pytest.approx(share, abs=1e-9)
    assert serial_share([(1.0, 1.0), *points]) == pytest.approx(share, abs=1e-9)


def test_one_device_alone_shows_no_share() -> None:
    with pytest.raises(ValueError, match="more devices"):
        serial_share([(1.0, 1.0)])


def on_gpus(share: float, ways: tuple[int, ...] = (1, 2, 4), label: str = "ddp") -> list[Record]:
    """Five runs a count, none of which differ, all phases together as Amdahl says."""
    found: list[Record] = []
    for count in ways:
        whole = 8.0 / speedup_at(count, share)
        found += made.repeats(
            f"{label} x{count}", [whole - 0.3] * 5, ways=count, strategy="ddp", host=made.GPUS, device="cuda"
        )
    return found


def test_rows_of_one_kind_make_a_family() -> None:
    (family,) = families(summarise(on_gpus(0.1)))
    assert family.kind == "ddp"
    assert [point.ways for point in family.points] == [1, 2, 4]
    assert family.points[0].speedup.median == 1
    assert family.serial is not None
    assert family.serial.median == pytest.approx(0.1)
    assert (family.serial.low, family.serial.high) == (pytest.approx(0.1), pytest.approx(0.1))


def test_single_begins_a_family_that_has_no_row_on_one_device() -> None:
    single = made.repeats("single", [7.7] * 5, host=made.GPUS, device="cuda")
    (family,) = families(summarise([*single, *on_gpus(0.2, (2, 4))], "single"))
    assert [point.row.label for point in family.points] == ["single", "ddp x2", "ddp x4"]
    (own,) = families(summarise([*single, *on_gpus(0.2)], "single"))
    assert [point.row.label for point in own.points] == ["ddp x1", "ddp x2", "ddp x4"]


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (made.repeats("single", made.SLOW) + made.repeats("ddp x2", made.FAST, ways=2), "shared cores"),
        (on_gpus(0.1) + on_gpus(0.1, (2,), "again"), "repeated count"),
        (on_gpus(1.5), "slower"),
        (on_gpus(-0.2, (1, 2)), "faster"),
    ],
)
def test_no_share_is_fitted_where_none_would_mean_anything(records: list[Record], reason: str) -> None:
    (family,) = families(summarise(records))
    assert (family.serial, family.no_fit) == (None, reason)


def test_other_work_and_shared_devices_are_no_part_of_a_family() -> None:
    other = made.repeats("ddp x2", made.FAST, ways=2, batch=128, host=made.GPUS, device="cuda")
    assert families(summarise([*on_gpus(0.1, (1,)), *other])) == ()
    shared = [replace(record, doubts=("simulated",)) for record in on_gpus(0.1, (2,))]
    assert families(summarise([*on_gpus(0.1, (1,)), *shared])) == ()
