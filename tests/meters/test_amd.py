from __future__ import annotations

import sys
from typing import Any

import fake_amdsmi
import pytest
from fake_amdsmi import AmdSmiException, FakeBoard

from escala.meters.amd import open_amd
from escala.meters.base import Bench
from escala.terms.errors import Unavailable
from escala.terms.host import Device, Host

ROCM = {"torch": "2.13.0+rocm7.0", "cuda": "None"}


def bench(*uuids: str, covered: str = "", software: dict[str, str] | None = None, **environment: str) -> Bench:
    devices = tuple(Device("cuda", index, "AMD Instinct MI300X", 1, uuid) for index, uuid in enumerate(uuids))
    host = Host("a processor", 2, 1, "Linux", devices, software=ROCM if software is None else software)
    return Bench(host, environment, covered=frozenset(covered.split()))


def where(meter: Any) -> list[str]:
    return [channel.where for channel in meter.channels]


def test_what_a_board_tells_is_in_plain_units(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_amdsmi.install(monkeypatch, [FakeBoard()])
    meter = open_amd(bench(""))
    (channel,), (sample,) = meter.channels, meter.read()
    assert (channel.where, channel.part, channel.joules, channel.watts) == ("cuda:0", "device", "counter", "sampled")
    assert (channel.limit_w, channel.reason) == (750.0, None)
    assert sample.joules == pytest.approx(30.6)
    assert sample[1:] == (410, 0.25, 2100, 55, None, 3 << 30, (71,), None)


def test_names_before_release_6_2_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    board = FakeBoard()
    board.energy = {"power": 1_000_000, "counter_resolution": 15.3, "timestamp": 1}
    board.power = {"average_socket_power": 90}
    board.metrics = {"throttle_status": 1}
    board.degrees = {"edge": 40}
    module = fake_amdsmi.install(monkeypatch, [board])
    del module.amdsmi_get_gpu_enumeration_info
    sample = open_amd(bench("")).read()[0]
    assert sample.joules == pytest.approx(15.3)
    assert (sample.watts, sample.throttled, sample.temperature_c) == (90, True, 40)
    board.metrics = {"throttle_status": 2**32 - 1}
    assert open_amd(bench("")).read()[0].throttled is None


def test_boards_get_the_frameworks_names_by_uuid(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [FakeBoard(number) for number in range(3)]
    fake_amdsmi.install(monkeypatch, made)
    as_text = b"22cc79ec7ca2b573".hex()
    meter = open_amd(bench(made[1].uuid.upper(), as_text))
    assert where(meter) == [made[0].uuid, "cuda:0", "cuda:1"]


def test_without_uuids_boards_go_by_number_where_there_are_as_many(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [FakeBoard(number) for number in range(2)]
    fake_amdsmi.install(monkeypatch, made)
    assert where(open_amd(bench("", ""))) == ["cuda:0", "cuda:1"]
    assert where(open_amd(bench(""))) == ["cuda:0", made[0].uuid, made[1].uuid]
    assert "cannot be told" in str(open_amd(bench("")).channels[0].reason)


@pytest.mark.parametrize("variable", ["HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"])
def test_where_a_variable_may_have_changed_the_order_numbers_tell_nothing(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    made = [FakeBoard(number) for number in range(2)]
    fake_amdsmi.install(monkeypatch, made)
    meter = open_amd(bench("", "", **{variable: "1,0"}))
    assert where(meter) == ["cuda:0", "cuda:1", made[0].uuid, made[1].uuid]
    assert meter.channels[0].reason


def test_a_uuid_that_all_boards_have_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [FakeBoard(number) for number in range(3)]
    for board in made:
        board.enumeration = {"hip_uuid": "GPU-XX"}
        board.uuid = AmdSmiException("not supported")
    fake_amdsmi.install(monkeypatch, made)
    meter = open_amd(bench("GPU-XX", "GPU-XX"))
    assert [channel.reason is None for channel in meter.channels[:2]] == [False, False]
    assert where(open_amd(bench("GPU-XX", "GPU-XX", "GPU-XX"))) == ["cuda:0", "cuda:1", "cuda:2"]


def test_partitions_of_a_board_count_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [FakeBoard(0), FakeBoard(1)]
    made[1].bus = "0000:01:00.1"
    fake_amdsmi.install(monkeypatch, made)
    assert where(open_amd(bench())) == [made[0].uuid]


def test_boards_of_nvidia_are_not_taken_for_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [FakeBoard()]
    fake_amdsmi.install(monkeypatch, made)
    assert where(open_amd(bench("", software={"cuda": "13.0"}))) == [made[0].uuid]


def test_an_accumulator_at_0_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    board = FakeBoard()
    board.energy["energy_accumulator"] = 0
    fake_amdsmi.install(monkeypatch, [board])
    meter = open_amd(bench(""))
    assert (meter.channels[0].joules, meter.channels[0].watts) == (None, "sampled")
    assert meter.read()[0].joules is None


def test_a_board_that_tells_neither_has_a_reason_and_never_0(monkeypatch: pytest.MonkeyPatch) -> None:
    board = FakeBoard()
    board.energy = AmdSmiException("not supported")
    board.power = {"current_socket_power": "N/A", "average_socket_power": 0}
    fake_amdsmi.install(monkeypatch, [board])
    meter = open_amd(bench(""))
    assert meter.channels[0].reason == "the board tells neither its energy nor its power"
    assert meter.read() == ((None,) * 7 + ((), meter.channels[0].reason),)


def test_a_board_that_vanishes_in_mid_run_gives_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    made = [FakeBoard(0), FakeBoard(1)]
    fake_amdsmi.install(monkeypatch, made)
    meter = open_amd(bench("", ""))
    for name in vars(made[0]):
        setattr(made[0], name, AmdSmiException("device not\nfound"))
    first, second = meter.read()
    assert first == (None,) * 7 + ((), "AMD SMI: device not found")
    assert second.watts == 410


def test_what_a_board_does_not_explain_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    board = FakeBoard()
    unknown = AmdSmiException("not supported")
    board.cap = board.activity = board.clock = board.metrics = board.memory = board.processes = unknown
    board.degrees = {}
    fake_amdsmi.install(monkeypatch, [board])
    meter = open_amd(bench(""))
    assert meter.channels[0].limit_w is None
    assert meter.read()[0][1:] == (410, None, None, None, None, None, (), None)


def test_parts_that_another_meter_reads_are_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_amdsmi.install(monkeypatch, [FakeBoard(0), FakeBoard(1)])
    assert where(open_amd(bench("", "", covered="cuda:0"))) == ["cuda:1"]


def test_without_package_driver_or_board_nothing_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "amdsmi", None)
    with pytest.raises(Unavailable, match="the package amdsmi is not installed"):
        open_amd(bench())
    fake_amdsmi.install(monkeypatch, [], AmdSmiException("no device"))
    with pytest.raises(Unavailable, match="no AMD driver on this machine"):
        open_amd(bench())
    module = fake_amdsmi.install(monkeypatch, [])
    with pytest.raises(Unavailable, match="lists no board"):
        open_amd(bench())
    assert module.started == 0


def test_an_import_that_fails_for_want_of_the_library_is_no_crash(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("modules")
    (folder / "amdsmi.py").write_text("raise KeyError('ROCM_PATH')\n")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "amdsmi", raising=False)
    with pytest.raises(Unavailable, match="no AMD driver on this machine"):
        open_amd(bench())


def test_closed_it_gives_the_library_back(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake_amdsmi.install(monkeypatch, [FakeBoard()])
    meter = open_amd(bench(""))
    assert module.started == 1
    meter.close()
    assert module.started == 0
