from __future__ import annotations

from typing import Any

import pytest
from scripted import written

from escala.meters.base import Channel, Sample
from escala.meters.readings import Told, idle, told
from escala.terms import energy
from escala.terms.record import Reading

BOARD = Channel("cuda:0", "device", joules="counter", watts="sampled", update_s=0.1, limit_w=700.0)
SECONDS = [float(second) for second in range(0, 101, 5)]
TRAIN = {"train": [(10.0, 70.0)], "validation": [(75.0, 85.0)]}


def steady(watts: float = 200.0, **more: Any) -> list[Sample]:
    return [Sample(joules=1000 + watts * second, watts=watts, **more) for second in SECONDS]


def of_board(column: list[Sample], channel: Channel = BOARD, **more: Any) -> Told:
    return told(written([channel], SECONDS, column), TRAIN, more.pop("devices", {"cuda:0"}), **more)


def reading(found: Told, what: str, phase: str | None = None) -> Reading:
    (one,) = [one for one in found.readings if (one.what, one.phase) == (what, phase)]
    return one


def test_a_counter_and_its_power_by_phase() -> None:
    found = of_board(steady())
    assert found.doubts == ()
    assert reading(found, energy.ENERGY, "train") == Reading(
        energy.ENERGY, "cuda:0", 200.0 * 60, "J", "counter", None, "train", used=True
    )
    assert reading(found, energy.ENERGY, "validation").value == 2000
    assert reading(found, energy.INTEGRAL, "train").value == 12000
    assert reading(found, energy.INTEGRAL, "train").how == "sampled"
    assert reading(found, energy.MEAN_POWER, "train").value == 200
    assert reading(found, energy.POWER_LIMIT).value == 700


def test_a_board_without_a_counter_has_its_power_integrated() -> None:
    column = [Sample(watts=second) for second in SECONDS]
    found = of_board(column, Channel("cuda:0", "device", watts="sampled"))
    one = reading(found, energy.ENERGY, "train")
    # From 10 W to 70 W along a line.
    assert (one.value, one.how, one.reason) == (pytest.approx(40 * 60), "sampled", None)
    assert not [one for one in found.readings if one.what == energy.INTEGRAL]


@pytest.mark.parametrize(
    ("joules", "why"), [(lambda _: 5.0, "stood still for 60.0 s"), (lambda second: -second, "ran backwards")]
)
def test_a_bad_counter_is_given_up_for_power_and_said(joules: Any, why: str) -> None:
    column = [Sample(joules=joules(second), watts=100.0) for second in SECONDS]
    one = reading(of_board(column), energy.ENERGY, "train")
    assert (one.value, one.how) == (6000, "sampled")
    assert one.reason is not None
    assert why in one.reason


def test_a_bad_counter_without_power_is_null_with_the_reason() -> None:
    column = [Sample(joules=5.0) for _ in SECONDS]
    one = reading(of_board(column, Channel("package-0", "cpu", joules="counter")), energy.ENERGY, "train")
    assert one.value is None
    assert one.reason == "its counter stood still for 60.0 s"


def test_a_part_that_vanishes_is_null_from_then_on_and_whole_before() -> None:
    column = [
        one if second < 72 else Sample(reason="the board is lost")
        for one, second in zip(steady(), SECONDS, strict=True)
    ]
    found = of_board(column)
    assert reading(found, energy.ENERGY, "train").value == 12000
    gone = reading(found, energy.ENERGY, "validation")
    assert (gone.value, gone.reason) == (None, "after 75.0 s: the board is lost")


def test_a_channel_that_cannot_be_read_is_null_with_its_reason() -> None:
    channel = Channel("dram-0", "memory", joules="counter", reason="permission denied on energy_uj")
    found = of_board([Sample(reason="permission denied on energy_uj")] * len(SECONDS), channel)
    assert [(one.value, one.reason, one.used) for one in found.readings] == [
        (None, "permission denied on energy_uj", True)
    ]


def test_boards_that_the_trial_did_not_run_on_are_told_apart_and_raise_no_doubt() -> None:
    found = of_board(steady(throttled=True, processes=(9,)), devices={"cuda:1"})
    assert {one.used for one in found.readings} == {False}
    assert found.doubts == ()


def test_processor_and_memory_are_used_by_every_trial() -> None:
    for channel in (Channel("package-0", "cpu", joules="counter"), Channel("dram-0", "memory", joules="counter")):
        assert {one.used for one in of_board(steady(), channel, devices=set()).readings} == {True}


def test_what_else_the_samples_tell() -> None:
    column = [
        Sample(
            joules=second,
            watts=second,
            utilisation=0.5,
            clock_mhz=1000.0,
            temperature_c=second,
            throttled=second > 79,
        )
        for second in SECONDS
    ]
    found = of_board(column)
    assert reading(found, energy.PEAK_POWER).value == 85
    assert reading(found, energy.TEMPERATURE).value == 85
    assert reading(found, energy.UTILISATION).value == pytest.approx(0.5)
    assert reading(found, energy.CLOCK).value == pytest.approx(1000)
    # Samples at 10 to 70 and at 75, 80, 85 s: 2 of 16.
    assert reading(found, energy.THROTTLED).value == 2 / 16
    assert "throttled" in found.doubts


def test_a_window_too_short_for_the_counter_is_flagged_and_below_one_renewal_refused() -> None:
    seconds = [0.0, 0.5, 1.0, 1.5]
    column = [Sample(joules=100 * second) for second in seconds]
    channel = Channel("cuda:0", "device", joules="counter", update_s=0.1)
    short = told(written([channel], seconds, column), {"train": [(0.2, 1.2)]}, {"cuda:0"})
    assert short.doubts == ("short energy window",)
    assert reading(short, energy.ENERGY, "train").value == pytest.approx(100)
    assert reading(short, energy.ENERGY, "train").reason == "windows of 1 s, counter renewed every 0.1 s"
    refused = told(written([channel], seconds, column), {"train": [(0.2, 0.25)]}, {"cuda:0"})
    one = reading(refused, energy.ENERGY, "train")
    assert (one.value, one.reason) == (None, "the phase took 50 ms, its counter is renewed every 0.1 s")


def test_too_few_samples_of_power_are_flagged() -> None:
    found = of_board([Sample(watts=10.0) for _ in SECONDS], Channel("cuda:0", "device", watts="sampled"))
    # 70 s are 14 samples of 5 s.
    assert found.doubts == ("short energy window",)


def test_counter_and_integral_that_differ_by_more_than_three_percent_raise_a_doubt() -> None:
    for share, doubts in ((1.02, ()), (1.04, ("energy disagrees",)), (0.96, ("energy disagrees",))):
        column = [Sample(joules=share * 200 * second, watts=200.0) for second in SECONDS]
        assert of_board(column).doubts == doubts


def test_estimates_are_marked() -> None:
    found = of_board([Sample(watts=65.0)] * len(SECONDS), Channel("cpu", "cpu", watts="estimated"))
    assert reading(found, energy.ENERGY, "train").how == "estimated"
    assert "energy estimated" in found.doubts


def test_other_processes_on_the_device_raise_a_doubt() -> None:
    found = of_board(steady(processes=(4, 5, 6)), own={4, 5})
    assert reading(found, energy.OTHERS).value == 1
    assert found.doubts == ("shared device",)
    assert of_board(steady(processes=(4, 5)), own={4, 5}).doubts == ()


def test_power_at_rest_is_the_mean_of_the_whole_time() -> None:
    found = idle(written([BOARD], SECONDS, steady(70.0)))
    assert found == (Reading(energy.IDLE_POWER, "cuda:0", 70.0, "W", "counter"),)
    (lost,) = idle(written([BOARD], SECONDS, [*steady()[:-1], Sample(reason="lost")]))
    assert lost.value is None


def test_energy_is_never_below_zero_or_zero_for_nothing_read() -> None:
    silent = [Sample()] * len(SECONDS)
    one = reading(of_board(silent), energy.ENERGY, "train")
    assert one.value is None
    assert one.reason == "it was not read for the whole of the phase"


def test_other_load_on_a_processor_that_is_read_raises_a_doubt() -> None:
    channel = Channel("package-0", "cpu", joules="counter")
    for share, doubts in ((0.05, ()), (0.3, ("shared device",))):
        found = of_board(steady(), channel, devices=set(), other_load=share)
        assert (reading(found, energy.OTHER_LOAD).value, found.doubts) == (share, doubts)
    # Where only boards are read, the processor's load is in no figure.
    assert of_board(steady(), other_load=0.9).doubts == ()


def test_what_one_meter_cannot_read_and_another_does_is_told_once() -> None:
    refused = [Sample(reason="permission denied")] * len(SECONDS)
    unread = (
        Channel("cuda:0", "device", reason="a slice of a board"),
        Channel("package-0", "cpu", joules="counter", reason="permission denied"),
        Channel("dram-0", "memory", joules="counter", reason="permission denied"),
    )
    estimates = (Channel("cuda:0", "device", watts="estimated"), Channel("cpu", "cpu", watts="estimated"))
    columns = [refused] * 3 + [[Sample(watts=50.0)] * len(SECONDS)] * 2
    samples = written([*unread, *estimates], SECONDS, *columns)
    found = [one for one in told(samples, TRAIN, {"cuda:0"}).readings if one.what == energy.ENERGY]
    assert {(one.where, one.how, one.value is None) for one in found} == {
        ("dram-0", "counter", True),
        ("cuda:0", "estimated", False),
        ("cpu", "estimated", False),
    }
    assert [(one.where, one.reason) for one in idle(samples) if one.value is None] == [
        ("dram-0", "permission denied")
    ]
