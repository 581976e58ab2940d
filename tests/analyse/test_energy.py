"""The energy of one run: every formula against figures worked out by hand, and nothing ever half summed."""

from __future__ import annotations

from math import inf, nan

import pytest
import recorded as made
from energetic import NO_NVML, NO_RAPL, PAIR, metered
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from escala.analyse.energy import Account, account
from escala.terms.energy import ENERGY
from escala.terms.record import How, Reading, Record


def on_gpu(ways: int = 1) -> Record:
    """2 s of training, 0.1 s of validation, 0.2 s of test on a host with two boards."""
    return made.make(device="cuda", host=PAIR, ways=ways)


def on_cpu() -> Record:
    return made.make()


def changed(record: Record, where: str, **new: object) -> Record:
    """The record with other readings of energy of one part."""
    readings = tuple(
        replace(one, **new) if one.what == ENERGY and one.where == where else one for one in record.readings
    )
    return replace(record, readings=readings)


def test_joules_of_used_parts_by_phase_and_together() -> None:
    found = account(metered(on_gpu(), {"cuda:0": 100.0, "cuda:1": 20.0, "package-0": 50.0, "dram-0": 10.0}))
    assert found.phase_j == pytest.approx({"train": 320.0, "validation": 16.0, "test": 32.0})
    assert found.energy_j == pytest.approx(368.0)  # (100 + 50 + 10) W over 2.3 s
    assert found.how == {"cuda:0": "counter", "package-0": "counter", "dram-0": "counter"}
    assert found.idle_parts == ("cuda:1",)


def test_the_whole_host_is_the_used_parts_and_the_boards_that_idled() -> None:
    found = account(metered(on_gpu(), {"cuda:0": 100.0, "cuda:1": 20.0}))
    assert found.idle_j == pytest.approx(46.0)
    assert found.host_j == pytest.approx(276.0)


def test_above_idle_is_less_what_each_part_takes_at_rest() -> None:
    idle_w = {"cuda:0": 20.0, "cuda:1": 20.0, "package-0": 30.0}
    found = account(metered(on_gpu(), {"cuda:0": 100.0, "cuda:1": 21.0, "package-0": 50.0}, idle_w))
    assert found.above_idle_j == pytest.approx(2.3 * (80 + 20))
    without = account(metered(on_gpu(), {"cuda:0": 100.0, "cuda:1": 21.0, "package-0": 50.0}, {"cuda:0": 20.0}))
    assert without.above_idle_j is None
    assert without.energy_j is not None


def test_watts_are_means_over_time_of_every_part() -> None:
    record = metered(on_gpu(), {"cuda:0": 100.0, "cuda:1": 20.0})
    readings = tuple(
        replace(one, value=330.0) if (one.what, one.where, one.phase) == ("mean power", "cuda:0", "test") else one
        for one in record.readings
    )
    found = account(replace(record, readings=readings))
    assert found.mean_w == pytest.approx({"cuda:0": (100 * 2.1 + 330 * 0.2) / 2.3, "cuda:1": 20.0})
    assert found.peak_w == {"cuda:0": 110.0, "cuda:1": 30.0}


def test_a_trial_without_validation_and_test_has_one_phase() -> None:
    found = account(metered(made.make(steps=100), {"package-0": 50.0}))
    assert (found.phase_j, found.energy_j) == ({"train": 100.0}, 100.0)


def test_of_one_host_without_counters_the_reasons_stand() -> None:
    record = replace(on_cpu(), readings=(NO_NVML, NO_RAPL))
    told = "nvml: no NVIDIA driver on this machine; rapl: permission denied on energy_uj"
    assert account(record) == Account(reason=f"not measured: {told}")
    assert account(on_cpu()).reason == "not measured: no power meter was asked for"


@pytest.mark.parametrize(
    ("watts", "reason"),
    [
        ({"cuda:0": "it vanished"}, "cuda:0: it vanished"),
        ({"cuda:0": "it vanished", "package-0": 50.0}, "cuda:0: it vanished"),
        ({"cuda:1": 20.0, "package-0": 50.0}, "no meter read cuda:0"),
    ],
)
def test_a_used_device_must_have_joules(watts: dict[str, float | str], reason: str) -> None:
    found = account(metered(on_gpu(), watts))
    assert (found.energy_j, found.host_j, found.reason) == (None, None, f"not measured: {reason}")


def test_one_of_two_devices_is_no_sum() -> None:
    found = account(metered(on_gpu(ways=2), {"cuda:0": 100.0, "cuda:1": "it vanished"}))
    assert (found.energy_j, found.reason) == (None, "not measured: cuda:1: it vanished")


def test_the_processor_may_be_missing_where_devices_did_the_work_and_the_sum_says_so() -> None:
    found = account(metered(on_gpu(), {"cuda:0": 100.0, "package-0": "permission denied"}, more=(NO_RAPL,)))
    assert found.energy_j == pytest.approx(230.0)
    assert list(found.how) == ["cuda:0"]


def test_on_the_processor_one_package_of_two_is_no_sum() -> None:
    found = account(metered(on_cpu(), {"package-0": 50.0, "package-1": "permission denied"}))
    assert (found.energy_j, found.reason) == (None, "not measured: package-1: permission denied")


def test_an_idle_board_that_was_not_read_leaves_the_host_unknown() -> None:
    for watts in ({"cuda:0": 100.0}, {"cuda:0": 100.0, "cuda:1": "no answer"}):
        found = account(metered(on_gpu(), watts))
        assert (found.energy_j, found.host_j) == (pytest.approx(230.0), None)
    hidden = account(metered(on_gpu(ways=2), {"cuda:0": 100.0, "cuda:1": 100.0, "GPU-0a1b-77": "no answer"}))
    assert (hidden.energy_j, hidden.host_j) == (pytest.approx(460.0), None)


@pytest.mark.parametrize("value", [-1.0, nan, inf, -inf])
def test_what_cannot_be_is_no_reading(value: float) -> None:
    found = account(changed(metered(on_cpu(), {"package-0": 50.0}), "package-0", value=value))
    assert found.energy_j is None
    assert f"package-0: it told {value:g} J for the phase train" in str(found.reason)


def test_no_joules_at_all_are_no_reading() -> None:
    found = account(metered(on_cpu(), {"package-0": 0.0}))
    assert (found.energy_j, found.reason) == (None, "not measured: package-0: it told 0 J")


def test_a_phase_that_was_not_read_leaves_no_sum() -> None:
    record = metered(on_cpu(), {"package-0": 50.0})
    readings = tuple(one for one in record.readings if one.phase != "test")
    found = account(replace(record, readings=readings))
    assert found.reason == "not measured: package-0: there is no reading of the phase test"


def test_a_part_that_is_told_of_twice_counts_once() -> None:
    record = metered(on_cpu(), {"package-0": 50.0})
    assert account(replace(record, readings=record.readings * 2)).energy_j == pytest.approx(115.0)


@pytest.mark.parametrize(
    ("phase", "expected"), [("test", "sampled"), ("validation", "counter"), ("train", "sampled")]
)
def test_how_a_part_was_read_is_the_weakest_way_of_a_good_share(phase: str, expected: How) -> None:
    # Of 2.3 s the test is 8.7 % and the validation 4.3 %.
    record = metered(on_cpu(), {"package-0": 50.0})
    readings = tuple(
        replace(one, how="sampled") if one.what == ENERGY and one.phase == phase else one for one in record.readings
    )
    assert account(replace(record, readings=readings)).how == {"package-0": expected}


def test_counter_against_integral_is_of_the_part_that_is_farthest_off() -> None:
    watts = {"cuda:0": 100.0, "cuda:1": 100.0}
    found = account(metered(on_gpu(ways=2), watts, integral={"cuda:0": 0.99, "cuda:1": 1.05}))
    assert found.counter_over_integral == pytest.approx(1 / 1.05)
    assert account(metered(on_gpu(ways=2), watts)).counter_over_integral is None
    sampled = metered(on_gpu(ways=2), watts, how="sampled", integral={"cuda:0": 0.5})
    assert account(sampled).counter_over_integral is None


@given(
    watts=st.lists(st.floats(1e-3, 1e4), min_size=2, max_size=2),
    missing=st.sampled_from(["", "cuda:0", "cuda:1"]),
)
def test_a_sum_is_whole_or_not_there(watts: list[float], missing: str) -> None:
    told: dict[str, float | str] = dict(zip(("cuda:0", "cuda:1"), watts, strict=True))
    if missing:
        told[missing] = "gone"
    found = account(metered(on_gpu(ways=2), told))
    if missing:
        assert (found.energy_j, found.phase_j) == (None, {})
    else:
        assert found.energy_j == pytest.approx(sum(watts) * 2.3)
        assert found.host_j == found.energy_j


def test_a_whole_meter_that_is_missing_is_no_part() -> None:
    found = account(metered(on_cpu(), {"package-0": 50.0}, more=(NO_NVML,)))
    assert (found.energy_j, found.host_j, found.idle_parts) == (pytest.approx(115.0), pytest.approx(115.0), ())


def test_a_reading_that_is_not_by_phase_is_no_sum() -> None:
    record = replace(on_cpu(), readings=(Reading(ENERGY, "package-0", 5.0, "J", "counter", used=True),))
    assert account(record).reason == "not measured: package-0: it was not read by phase"
