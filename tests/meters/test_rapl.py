from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ordinary_user import as_ordinary_user

from escala.meters.base import Bench
from escala.meters.rapl import opened
from escala.terms.errors import Unavailable
from escala.terms.host import Host

BENCH = Bench(Host("a processor", 2, 1, "Linux"))
SPAN = 262_143_328_850


def zone(root: Path, place: str, name: str, microjoules: int | str = 0, span: int | None = SPAN) -> Path:
    folder = root / place
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "energy_uj").write_text(f"{microjoules}\n")
    if span is not None:
        (folder / "max_energy_range_uj").write_text(f"{span}\n")
    return folder


@pytest.fixture
def seen_by_all() -> Iterator[Path]:
    """A folder that others may enter, unlike those that pytest makes."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder


def server(root: Path) -> Path:
    """Two packages as the kernel lists them: inner zones both inside the outer ones and beside them."""
    root.mkdir()
    (root / "intel-rapl").mkdir()
    for number in range(2):
        outer = zone(root, f"intel-rapl:{number}", f"package-{number}", 1_000_000 * (number + 1))
        for inner, name in enumerate(("core", "uncore", "dram")):
            zone(outer, f"intel-rapl:{number}:{inner}", name, 500_000)
            (root / f"intel-rapl:{number}:{inner}").symlink_to(outer / f"intel-rapl:{number}:{inner}")
    zone(root, "intel-rapl:2", "psys", 9_000_000)
    zone(root, "intel-rapl-mmio:0", "package-0", 1_000_000)
    zone(root, "dtpm:0", "package-0", 1_000_000)
    return root


def test_packages_and_memory_are_read_each_once(tmp_path: Path) -> None:
    meter = opened(server(tmp_path / "powercap"), BENCH)
    assert [(channel.where, channel.part) for channel in meter.channels] == [
        ("package-0", "cpu"),
        ("dram-0", "memory"),
        ("package-1", "cpu"),
        ("dram-1", "memory"),
    ]
    assert all((one.joules, one.watts, one.update_s) == ("counter", None, 0.001) for one in meter.channels)
    assert [sample.joules for sample in meter.read()] == [1.0, 0.5, 2.0, 0.5]


def test_inner_zones_are_found_where_nothing_stands_beside_them(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "package-0")
    zone(tmp_path, "intel-rapl:0/intel-rapl:0:0", "dram")
    assert [channel.where for channel in opened(tmp_path, BENCH).channels] == ["package-0", "dram-0"]


def test_dies_of_a_package_are_told_apart(tmp_path: Path) -> None:
    for number in range(2):
        zone(tmp_path, f"intel-rapl:{number}", f"package-0-die-{number}")
        zone(tmp_path, f"intel-rapl:{number}:0", "dram")
    assert [channel.where for channel in opened(tmp_path, BENCH).channels] == [
        "package-0-die-0",
        "dram-0-die-0",
        "package-0-die-1",
        "dram-0-die-1",
    ]


def test_ten_packages_come_in_order(tmp_path: Path) -> None:
    for number in range(11):
        zone(tmp_path, f"intel-rapl:{number}", f"package-{number}")
    assert [channel.where for channel in opened(tmp_path, BENCH).channels] == [f"package-{n}" for n in range(11)]


def test_the_platform_counts_only_where_there_is_no_package(tmp_path: Path) -> None:
    zone(tmp_path, "intel-rapl:0", "psys", 3_000_000)
    meter = opened(tmp_path, BENCH)
    assert [(channel.where, channel.part) for channel in meter.channels] == [("psys", "cpu")]
    assert meter.read()[0].joules == 3.0


def test_a_counter_that_wraps_round_goes_on(tmp_path: Path) -> None:
    file = zone(tmp_path, "intel-rapl:0", "package-0", SPAN - 2_000_000) / "energy_uj"
    meter = opened(tmp_path, BENCH)
    before = meter.read()[0].joules
    told = list[float]()
    for microjoules in (1_000_000, SPAN - 1_000_000, 500_000):
        # From its second to its third value it goes on by nearly the whole span, as between two trials.
        file.write_text(str(microjoules))
        told.append(meter.read()[0].joules or 0.0)
    assert before is not None
    assert told[0] - before == pytest.approx(3.0)
    assert told[2] - told[1] == pytest.approx(1.5)


@example(steps=[1, 0], start=SPAN - 1)
@given(steps=st.lists(st.integers(0, SPAN // 3), min_size=1, max_size=20), start=st.integers(0, SPAN - 1))
def test_differences_are_right_over_any_number_of_wraps(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int], start: int
) -> None:
    root = tmp_path_factory.mktemp("powercap")
    file = zone(root, "intel-rapl:0", "package-0", start) / "energy_uj"
    meter = opened(root, BENCH)
    before = meter.read()[0].joules
    value = start
    for step in steps:
        value += step
        file.write_text(str(value % SPAN))
        after = meter.read()[0].joules
        assert before is not None
        assert after is not None
        assert after - before == pytest.approx(step / 1e6, abs=1e-3)
        before = after


def test_a_counter_that_runs_backwards_is_not_taken_for_one_that_wraps(tmp_path: Path) -> None:
    file = zone(tmp_path, "intel-rapl:0", "package-0", 5_000_000) / "energy_uj"
    meter = opened(tmp_path, BENCH)
    first = meter.read()[0].joules
    file.write_text("4000000")
    second = meter.read()[0].joules
    assert (first, second) == (5.0, 4.0)


@pytest.mark.parametrize("span", [None, 0])
def test_without_its_range_a_counter_is_read_as_it_stands(tmp_path: Path, span: int | None) -> None:
    file = zone(tmp_path, "intel-rapl:0", "package-0", 5_000_000, span) / "energy_uj"
    meter = opened(tmp_path, BENCH)
    file.write_text("1000000")
    assert meter.read()[0].joules == 1.0


def test_a_counter_that_only_the_administrator_may_read_has_a_reason(seen_by_all: Path) -> None:
    file = zone(seen_by_all, "intel-rapl:0", "package-0") / "energy_uj"
    zone(seen_by_all, "intel-rapl:0:0", "dram", 7_000_000)
    file.chmod(0)
    with as_ordinary_user():
        meter = opened(seen_by_all, BENCH)
        package, memory = meter.read()
    assert meter.channels[0].reason == f"permission denied on {file}"
    assert meter.channels[0].joules is None
    assert package == (None,) * 7 + ((), f"permission denied on {file}")
    assert memory.joules == 7.0


def test_where_no_counter_may_be_read_the_reason_names_the_file_and_no_superuser(seen_by_all: Path) -> None:
    files = [zone(seen_by_all, f"intel-rapl:{n}", f"package-{n}") / "energy_uj" for n in range(2)]
    for file in files:
        file.chmod(0)
    with as_ordinary_user(), pytest.raises(Unavailable) as caught:
        opened(seen_by_all, BENCH)
    assert str(caught.value) == f"permission denied on {files[0]}"
    assert "root" not in str(caught.value).replace(str(seen_by_all), "")


def test_permission_taken_away_in_mid_run_is_a_reason(seen_by_all: Path) -> None:
    file = zone(seen_by_all, "intel-rapl:0", "package-0", 1) / "energy_uj"
    with as_ordinary_user():
        meter = opened(seen_by_all, BENCH)
        assert meter.read()[0].reason is None
    file.chmod(0)
    with as_ordinary_user():
        assert meter.read()[0].reason == f"permission denied on {file}"


def test_a_zone_that_vanishes_in_mid_run_gives_a_reason_and_the_others_go_on(tmp_path: Path) -> None:
    gone = zone(tmp_path, "intel-rapl:0", "package-0") / "energy_uj"
    zone(tmp_path, "intel-rapl:1", "package-1", 2_000_000)
    meter = opened(tmp_path, BENCH)
    gone.unlink()
    first, second = meter.read()
    assert (first.joules, first.reason) == (None, f"{gone} is gone")
    assert (second.joules, second.reason) == (2.0, None)


@pytest.mark.parametrize("text", ["", "-5", "nan", "1e6", "12 13", "\x1b[31m7", "٣", "9" * 100])
def test_what_is_no_number_of_microjoules_is_a_reason(tmp_path: Path, text: str) -> None:
    file = zone(tmp_path, "intel-rapl:0", "package-0", 1) / "energy_uj"
    meter = opened(tmp_path, BENCH)
    file.write_text(text)
    (sample,) = meter.read()
    assert sample.joules is None
    assert str(file) in str(sample.reason)
    assert str(sample.reason).isprintable()


def test_without_a_tree_the_reason_names_its_place(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match=r"this machine has no powercap tree at .*nowhere"):
        opened(tmp_path / "nowhere", BENCH)


def test_a_tree_without_a_processors_zone(tmp_path: Path) -> None:
    zone(tmp_path, "dtpm:0", "whole")
    (tmp_path / "intel-rapl:0").mkdir()
    with pytest.raises(Unavailable, match="has no processor's zone"):
        opened(tmp_path, BENCH)


def test_what_another_meter_reads_is_left_to_it(tmp_path: Path) -> None:
    root = server(tmp_path / "powercap")
    meter = opened(root, Bench(BENCH.host, covered=frozenset({"cpu", "dram-1"})))
    assert [channel.where for channel in meter.channels] == ["dram-0"]
