from __future__ import annotations

import os
import sys
from types import SimpleNamespace
from typing import Any

import fake_nvml
import pytest
from fake_nvml import FakeBoard, NVMLError_FunctionNotFound, NVMLError_GpuIsLost, NVMLError_NotSupported

from escala.meters.base import Bench
from escala.meters.nvml import open_nvml
from escala.terms.errors import EscalaError, Unavailable
from escala.terms.host import Device, Host

UUIDS = tuple(f"GPU-{number}{number}aa0000-bbbb-cccc-dddd-eeeeeeeeeeee" for number in range(4))


def bench(*uuids: str, covered: str = "", software: dict[str, str] | None = None, **environment: str) -> Bench:
    devices = tuple(Device("cuda", index, "NVIDIA Test Board", 1, uuid) for index, uuid in enumerate(uuids))
    host = Host("a processor", 2, 1, "Linux", devices, software=software or {})
    return Bench(host, environment, covered=frozenset(covered.split()))


def boards(count: int = 4) -> list[FakeBoard]:
    return [FakeBoard(uuid) for uuid in UUIDS[:count]]


def where(meter: Any) -> list[str]:
    return [channel.where for channel in meter.channels]


def test_what_a_board_tells_is_in_plain_units(monkeypatch: pytest.MonkeyPatch) -> None:
    (board,) = made = boards(1)
    board.reasons = 0x04
    board.processes = [SimpleNamespace(pid=71), SimpleNamespace(pid=0)]
    fake_nvml.install(monkeypatch, made)
    meter = open_nvml(bench(UUIDS[0]))
    (channel,), (sample,) = meter.channels, meter.read()
    assert (channel.where, channel.part, channel.joules, channel.watts) == ("cuda:0", "device", "counter", "sampled")
    assert (channel.limit_w, channel.update_s, channel.reason) == (700.0, 0.1, None)
    assert sample == (5.0, 200.0, 0.5, 1980, 60, True, 1 << 30, (71,), None)


def test_power_at_one_moment_is_taken_before_the_mean_of_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    (board,) = made = boards(1)
    board.instant = 650_000
    fake_nvml.install(monkeypatch, made)
    meter = open_nvml(bench(UUIDS[0]))
    assert meter.read()[0].watts == 650.0
    # A board that answers with 0 does not know it.
    board.instant = 0
    assert meter.read()[0].watts == 200.0


def test_boards_get_the_frameworks_names_by_uuid_with_or_without_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvml.install(monkeypatch, boards())
    host = bench(UUIDS[2].removeprefix("GPU-").upper(), UUIDS[0], CUDA_VISIBLE_DEVICES="2,0")
    assert where(open_nvml(host)) == ["cuda:1", UUIDS[1], "cuda:0", UUIDS[3]]


def test_each_physical_board_is_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = boards(2)
    fake_nvml.install(monkeypatch, [*made, FakeBoard(UUIDS[0].upper().replace("GPU-", "GPU-"))])
    assert where(open_nvml(bench(UUIDS[0], UUIDS[1]))) == ["cuda:0", "cuda:1"]


def test_two_devices_on_one_board_do_not_count_it_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvml.install(monkeypatch, boards(1))
    second, first = open_nvml(bench(UUIDS[0], UUIDS[0])).channels
    assert (first.where, first.reason) == ("cuda:0", None)
    assert (second.where, second.reason) == ("cuda:1", "it is the same board as cuda:0")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("2,0", ["cuda:1", UUIDS[1], "cuda:0", UUIDS[3]]), ("GPU-33,GPU-1", [UUIDS[0], "cuda:1", UUIDS[2], "cuda:0"])],
)
def test_without_uuids_the_variable_tells(monkeypatch: pytest.MonkeyPatch, value: str, expected: list[str]) -> None:
    fake_nvml.install(monkeypatch, boards())
    assert where(open_nvml(bench("", "", CUDA_VISIBLE_DEVICES=value))) == expected


def test_unlike_boards_are_not_guessed_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    made = boards(2)
    made[1].name = "NVIDIA Faster Board"
    fake_nvml.install(monkeypatch, made)
    unsure = open_nvml(bench("", ""))
    assert where(unsure) == ["cuda:0", "cuda:1", UUIDS[0], UUIDS[1]]
    assert all("cannot be told" in (channel.reason or "") for channel in unsure.channels[:2])
    assert where(open_nvml(bench("", "", CUDA_DEVICE_ORDER="PCI_BUS_ID"))) == ["cuda:0", "cuda:1"]
    assert where(open_nvml(bench("", "", CUDA_VISIBLE_DEVICES=",".join(reversed(UUIDS[:2]))))) == ["cuda:1", "cuda:0"]


def test_a_variable_that_shows_other_boards_than_the_framework_has_is_not_believed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake_nvml.install(monkeypatch, boards())
    assert where(open_nvml(bench("", CUDA_VISIBLE_DEVICES="2,0"))) == ["cuda:0", *UUIDS]


def test_a_variable_of_no_known_form_is_an_error_even_with_uuids(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake_nvml.install(monkeypatch, boards())
    with pytest.raises(EscalaError, match="CUDA_VISIBLE_DEVICES"):
        open_nvml(bench(UUIDS[0], CUDA_VISIBLE_DEVICES="first"))
    assert module.started == 0


def test_a_slice_has_a_reason_and_its_board_a_channel_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    made = boards(1)
    made[0].mig = [1, 1]
    fake_nvml.install(monkeypatch, made)
    for uuid in ("MIG-aaaa", UUIDS[0]):
        piece, whole = open_nvml(bench(uuid, CUDA_VISIBLE_DEVICES="MIG-aaaa")).channels
        assert piece.where == "cuda:0"
        assert "MIG slice" in (piece.reason or "")
        assert (piece.joules, piece.watts) == (None, None)
        assert (whole.where, whole.joules) == (UUIDS[0], "counter")


def test_a_slice_is_known_by_the_variable_too(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvml.install(monkeypatch, boards(1))
    meter = open_nvml(bench("", CUDA_VISIBLE_DEVICES="MIG-aaaa"))
    assert where(meter) == ["cuda:0", UUIDS[0]]
    assert "MIG slice" in str(meter.channels[0].reason)
    assert meter.read()[0].reason == meter.channels[0].reason


def test_a_board_without_a_counter_is_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    (board,) = made = boards(1)
    board.millijoules = NVMLError_NotSupported("Not Supported")
    fake_nvml.install(monkeypatch, made)
    meter = open_nvml(bench(UUIDS[0]))
    assert (meter.channels[0].joules, meter.channels[0].watts) == (None, "sampled")
    assert (meter.read()[0].joules, meter.read()[0].watts, meter.read()[0].reason) == (None, 200.0, None)


def test_a_board_that_tells_neither_has_a_reason_and_never_0(monkeypatch: pytest.MonkeyPatch) -> None:
    (board,) = made = boards(1)
    board.millijoules = board.milliwatts = NVMLError_NotSupported("Not Supported")
    fake_nvml.install(monkeypatch, made)
    meter = open_nvml(bench(UUIDS[0]))
    assert meter.channels[0].reason == "the board tells neither its energy nor its power"
    assert meter.read()[0].joules is None
    assert meter.read()[0].watts is None
    assert meter.read()[0].reason


def test_what_a_board_does_not_explain_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    (board,) = made = boards(1)
    unknown = NVMLError_NotSupported("Not Supported")
    board.busy = board.memory = board.clock = board.degrees = board.reasons = board.limit = unknown
    board.processes = fake_nvml.NVMLLibraryMismatchError("of another version")
    fake_nvml.install(monkeypatch, made)
    meter = open_nvml(bench(UUIDS[0]))
    assert meter.channels[0].limit_w is None
    assert meter.read()[0] == (5.0, 200.0, None, None, None, None, None, (), None)


@pytest.mark.parametrize(
    ("bits", "held_back"),
    [(0, False), (0x1, False), (0x2, False), (0x10, False), (0x100, False)]
    + [(bit, True) for bit in (0x4, 0x8, 0x20, 0x40, 0x80, 0x81)],
)
def test_only_heat_power_and_faults_hold_a_board_back(
    monkeypatch: pytest.MonkeyPatch, bits: int, held_back: bool
) -> None:
    (board,) = made = boards(1)
    board.reasons = bits
    fake_nvml.install(monkeypatch, made)
    assert open_nvml(bench(UUIDS[0])).read()[0].throttled is held_back


def test_an_older_driver_knows_throttling_by_its_older_name(monkeypatch: pytest.MonkeyPatch) -> None:
    made = boards(1)
    module = fake_nvml.install(monkeypatch, made)

    def unknown(handle: object) -> int:
        raise NVMLError_FunctionNotFound("Function Not Found")

    module.nvmlDeviceGetCurrentClocksEventReasons = unknown
    made[0].reasons = 0x20
    assert open_nvml(bench(UUIDS[0])).read()[0].throttled is True


def test_a_board_lost_in_mid_run_gives_a_reason_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made = boards(2)
    fake_nvml.install(monkeypatch, made)
    meter = open_nvml(bench(*UUIDS[:2]))
    lost = NVMLError_GpuIsLost("GPU is lost")
    for name in vars(made[0]):
        setattr(made[0], name, lost)
    first, second = meter.read()
    assert first == (None,) * 7 + ((), "NVML: GPU is lost")
    assert second.joules == 5.0


def test_a_board_lost_beforehand_has_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvml.install(monkeypatch, [NVMLError_GpuIsLost("GPU is lost"), *boards(1)])
    meter = open_nvml(bench(UUIDS[0]))
    assert [(channel.where, channel.reason) for channel in meter.channels] == [
        ("board 0", "NVML: GPU is lost"),
        ("cuda:0", None),
    ]


def test_parts_that_another_meter_reads_are_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvml.install(monkeypatch, boards(3))
    assert where(open_nvml(bench(UUIDS[0], UUIDS[1], covered=f"cuda:1 {UUIDS[2]}"))) == ["cuda:0"]


def test_boards_of_amd_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_nvml.install(monkeypatch, boards(1))
    assert where(open_nvml(bench("feed", software={"cuda": "None"}))) == [UUIDS[0]]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (fake_nvml.NVMLError_LibraryNotFound("not found"), "no NVIDIA driver on this machine"),
        (fake_nvml.NVMLError("Unknown Error"), "NVML: Unknown Error"),
    ],
)
def test_without_a_driver_nothing_can_be_read(monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str) -> None:
    fake_nvml.install(monkeypatch, [], error)
    with pytest.raises(Unavailable, match=reason):
        open_nvml(bench())


def test_without_the_package_nothing_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    with pytest.raises(Unavailable, match="the package nvidia-ml-py is not installed"):
        open_nvml(bench())


def test_without_a_board_the_library_is_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake_nvml.install(monkeypatch, [])
    with pytest.raises(Unavailable, match="lists no board"):
        open_nvml(bench())
    assert module.started == 0


def test_closed_it_gives_the_library_back(monkeypatch: pytest.MonkeyPatch) -> None:
    module = fake_nvml.install(monkeypatch, boards(1))
    meter = open_nvml(bench(UUIDS[0]))
    assert module.started == 1
    meter.close()
    assert module.started == 0


def test_the_real_package_has_every_name_that_is_used() -> None:
    real = pytest.importorskip("pynvml")
    for name in vars(fake_nvml.fake_nvml([])):
        if not name.startswith("_") and name != "started":
            assert hasattr(real, name), name


@pytest.mark.gpu
def test_a_real_board_has_the_frameworks_name_and_tells_what_it_takes() -> None:
    from escala.plan.probe import probe

    host = probe()
    meter = open_nvml(Bench(host, dict(os.environ)))
    try:
        found = dict(zip(where(meter), zip(meter.channels, meter.read(), strict=True), strict=True))
        assert {device.key for device in host.devices} <= set(found)
        for channel, sample in found.values():
            assert channel.reason is None
            assert channel.limit_w is not None
            assert sample.watts is not None
            assert 1 < sample.watts < 1.2 * channel.limit_w
            assert channel.joules is None or (sample.joules or 0) > 0
    finally:
        meter.close()
