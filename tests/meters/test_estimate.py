from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import fake_nvml
import psutil
import pytest
from fake_nvml import FakeBoard, NVMLError_NotSupported

from escala.meters.base import Bench
from escala.meters.estimate import Load, opened, packages
from escala.meters.tdp import board_w, processor_w
from escala.terms.errors import Unavailable
from escala.terms.host import Device, Host

UUID = "GPU-00aa0000-bbbb-cccc-dddd-eeeeeeeeeeee"
TWO_PACKAGES = "".join(f"processor\t: {n}\nphysical id\t: {n % 2}\nflags\t\t: fpu avx2\n\n" for n in range(4))


def bench(
    cpu: str = "an unknown processor", devices: int = 0, tdp_w: Mapping[str, float] | None = None, covered: str = ""
) -> Bench:
    cards = tuple(Device("cuda", index, "NVIDIA Test Board", 1, UUID) for index in range(devices))
    return Bench(Host(cpu, 4, 1, "Linux", cards), {}, tdp_w or {}, frozenset(covered.split()))


@pytest.fixture
def cpuinfo(tmp_path: Path) -> Path:
    path = tmp_path / "cpuinfo"
    path.write_text(TWO_PACKAGES)
    return path


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, float]]:
    """Seconds busy and idle that the system tells, the last one for ever; 4 processors."""
    moments = [(0.0, 0.0)]
    monkeypatch.setattr(psutil, "cpu_count", lambda: 4)
    monkeypatch.setattr(psutil, "cpu_times", lambda: Times(*moments[-1], guest=moments[-1][0] / 2))
    return moments


class Times(NamedTuple):
    """Seconds since the system began. A guest's are told twice: in `user`, and by themselves."""

    user: float
    idle: float
    guest: float


def test_processors_take_their_rated_power_times_their_load(cpuinfo: Path, load: list[tuple[float, float]]) -> None:
    meter = opened(bench(tdp_w={"cpu": 200}), cpuinfo)
    (channel,) = meter.channels
    assert (channel.where, channel.part, channel.joules, channel.watts) == ("cpu", "cpu", None, "estimated")
    load.append((1.0, 3.0))
    (sample,) = meter.read()
    assert (sample.watts, sample.utilisation) == (50.0, 0.25)
    load.append((5.0, 3.0))
    assert meter.read()[0].watts == 200.0


def test_two_readings_at_once_tell_the_same(cpuinfo: Path, load: list[tuple[float, float]]) -> None:
    meter = opened(bench(tdp_w={"cpu": 100}), cpuinfo)
    assert meter.read()[0] == (None,) * 7 + ((), None)
    load.append((1.0, 1.0))
    assert meter.read()[0].watts == 50.0
    load.append((1.1, 1.0))
    assert meter.read()[0].watts == 50.0
    # A clock that was set back is no load below 0.
    load.append((0.0, 0.0))
    assert meter.read()[0].watts == 50.0


def test_a_processor_of_the_table_counts_once_a_package(cpuinfo: Path, load: list[tuple[float, float]]) -> None:
    meter = opened(bench("Intel(R) Xeon(R) Platinum 8480+"), cpuinfo)
    load.append((8.0, 0.0))
    assert meter.read()[0].watts == 700.0


def test_a_virtual_machine_is_told_to_declare_it(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text(TWO_PACKAGES.replace("avx2", "avx2 hypervisor"))
    with pytest.raises(Unavailable, match=r"virtual machine .* give measure\.tdp_w\.cpu"):
        opened(bench("AMD EPYC 7763 64-Core Processor"), file)
    assert opened(bench(tdp_w={"cpu": 40}), file).channels[0].watts == "estimated"


def test_packages_are_counted_by_their_numbers(cpuinfo: Path, tmp_path: Path) -> None:
    assert packages(cpuinfo) == 2
    assert packages(tmp_path / "none") == 1


def test_an_unknown_processor_has_a_reason(cpuinfo: Path) -> None:
    with pytest.raises(Unavailable, match=r"cpu: its rated power is not known: give measure\.tdp_w\.cpu"):
        opened(bench(), cpuinfo)


@pytest.mark.parametrize("tdp_w", [{"cuda:0": 300}, {"cuda": 300}, {"cuda:0": 300, "cuda": 500}])
def test_a_device_takes_its_rated_power_times_its_utilisation(
    monkeypatch: pytest.MonkeyPatch, cpuinfo: Path, tdp_w: dict[str, float]
) -> None:
    module = fake_nvml.install(monkeypatch, [FakeBoard(UUID)])
    meter = opened(bench(devices=1, tdp_w=tdp_w, covered="cpu"), cpuinfo)
    (channel,), (sample,) = meter.channels, meter.read()
    assert (channel.where, channel.part, channel.joules, channel.watts) == ("cuda:0", "device", None, "estimated")
    assert (sample.watts, sample.utilisation) == (150.0, 0.5)
    meter.close()
    assert module.started == 0


def test_without_a_device_s_utilisation_no_full_load_is_assumed(
    monkeypatch: pytest.MonkeyPatch, cpuinfo: Path
) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    meter = opened(bench(devices=1, tdp_w={"cuda": 300, "cpu": 100}), cpuinfo)
    _, device = meter.channels
    assert device.watts is None
    assert device.reason == "its utilisation cannot be read: the package nvidia-ml-py is not installed"
    assert meter.read()[1].reason == device.reason
    assert meter.read()[1].watts is None


def test_a_board_that_does_not_tell_its_utilisation(monkeypatch: pytest.MonkeyPatch, cpuinfo: Path) -> None:
    board = FakeBoard(UUID)
    board.busy = NVMLError_NotSupported("Not Supported")
    module = fake_nvml.install(monkeypatch, [board])
    with pytest.raises(Unavailable, match="cuda:0: its utilisation cannot be read: the NVIDIA driver does not tell"):
        opened(bench(devices=1, tdp_w={"cuda": 300}, covered="cpu"), cpuinfo)
    assert module.started == 0


def test_a_device_that_vanishes_in_mid_run_tells_nothing(monkeypatch: pytest.MonkeyPatch, cpuinfo: Path) -> None:
    board = FakeBoard(UUID)
    fake_nvml.install(monkeypatch, [board])
    meter = opened(bench(devices=1, tdp_w={"cuda": 300}, covered="cpu"), cpuinfo)
    board.busy = fake_nvml.NVMLError_GpuIsLost("GPU is lost")
    (sample,) = meter.read()
    assert sample.watts is None
    assert sample.reason == "its utilisation was not told"


def test_a_device_of_no_table_has_a_reason(monkeypatch: pytest.MonkeyPatch, cpuinfo: Path) -> None:
    fake_nvml.install(monkeypatch, [FakeBoard(UUID)])
    with pytest.raises(Unavailable, match=r"cuda:0: its rated power is not known: give measure\.tdp_w\.cuda"):
        opened(bench(devices=1, covered="cpu"), cpuinfo)


def test_what_other_meters_read_is_not_estimated(cpuinfo: Path) -> None:
    meter = opened(bench(devices=1, tdp_w={"cuda": 300, "cpu": 100}, covered="cpu cuda:0"), cpuinfo)
    assert meter.channels == ()
    assert meter.read() == ()


@pytest.mark.parametrize(
    ("name", "watts"),
    [
        ("Intel(R) Xeon(R) Platinum 8480+", 350),
        ("Intel(R) Xeon(R) CPU E5-2690 v4 @ 2.60GHz", 135),
        ("AMD EPYC 7763 64-Core Processor", 280),
        ("AMD EPYC 7763P 64-Core Processor", None),
        ("Intel(R) Core(TM) i9-13900K", 125),
        ("13th Gen Intel(R) Core(TM) i9-13900KS", None),
        ("AMD Ryzen 9 7950X 16-Core Processor", 170),
        ("AMD Ryzen 9 7950X3D 16-Core Processor", None),
        ("Intel(R) Xeon(R) Processor @ 2.10GHz", None),
        ("Intel(R) Xeon(R) Gold 7763", None),
        ("", None),
    ],
)
def test_processors_of_the_table(name: str, watts: float | None) -> None:
    assert processor_w(name) == watts


def test_boards_of_the_table_by_their_whole_name() -> None:
    assert board_w("NVIDIA H100 80GB HBM3") == 700
    assert board_w("NVIDIA GeForce RTX 3090 Laptop GPU") is None


def test_the_real_system_tells_a_share() -> None:
    load = Load()
    load._total -= 1000.0
    load._busy -= 400.0
    share = load()
    assert share is not None
    assert 0.3 < share < 0.5
