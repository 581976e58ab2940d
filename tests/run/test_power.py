from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny
from scripted import PACKAGE, written
from trials import trial_of

from escala.meters.base import Channel, Sample
from escala.run.assignment import SeatResult, Span
from escala.run.power import _own_on_devices, together
from escala.run.trace import arrays_of
from escala.store.trace import read_trace
from escala.terms.energy import used_joules, used_parts
from escala.terms.record import Reading
from escala.terms.trial import Seat, StrategyUse, Trial

EXPERIMENT = """
[workload]
name = "mlp"
data = "{images}"
options = {{ dropout = 0.0 }}
[train]
batch = 64
epochs = 2
until = 0.05
[[strategy]]
name = "single"
[measure]
repeats = 1
cooldown_s = 0
idle_s = 0.2
sample_s = 0.05
meters = {meters}
"""


def result(*spans: Span) -> SeatResult:
    return SeatResult(
        setup_s=1,
        first_step_s=1,
        settled=True,
        steps_per_block=1,
        block_seconds=(),
        losses=(),
        epochs=(),
        steps=0,
        samples=0,
        train_s=1,
        spans=spans,
    )


def test_a_span_reaches_from_the_first_seat_to_the_last() -> None:
    found = together([result(Span("train", 1, 1.0, 2.0)), result(Span("train", 1, 0.5, 1.5))])
    assert found == (Span("train", 1, 0.5, 2.0),)


def test_processes_by_the_drivers_numbers() -> None:
    board = Channel("cuda:0", "device", watts="sampled")

    def of(*rows: tuple[int, ...]) -> Any:
        return written([board], range(len(rows)), [Sample(processes=row) for row in rows])

    assert _own_on_devices(of((7,), (7, 40), (7, 40, 41)), {40, 41, 99}) == {40, 41, 99}
    # In a container none of our own numbers is there.
    assert _own_on_devices(of((7,), (7, 40), (7, 40, 41)), {3}) == {40, 41}


def test_arrays_of_a_trace() -> None:
    board = Channel("cuda:0", "device", joules="counter", watts="sampled")
    seconds = [10.0, 10.5, 11.0]
    package = [Sample(joules=100.0), Sample(joules=120.0), Sample(joules=150.0)]
    card = [Sample(joules=5.0, watts=70.0), Sample(reason="lost"), Sample(joules=9.0, watts=90.0, throttled=True)]
    found = arrays_of(written([PACKAGE, board], seconds, package, card))
    assert found["seconds"].tolist() == [0.0, 0.5, 1.0]
    assert found["package-0/joules"].tolist() == [0.0, 20.0, 50.0]
    # Of a counter alone the slope.
    np.testing.assert_array_equal(found["package-0/watts"], np.array([np.nan, 40.0, 60.0], dtype=np.float32))
    np.testing.assert_array_equal(found["cuda:0/watts"], np.array([70.0, np.nan, 90.0], dtype=np.float32))
    np.testing.assert_array_equal(found["cuda:0/throttled"], np.array([np.nan, np.nan, 1.0], dtype=np.float32))
    assert "cuda:0/clock_mhz" not in found


def trial(*devices: str) -> Trial:
    seats = tuple(Seat(rank, 0, (device,), (0, 64), 1) for rank, device in enumerate(devices))
    return trial_of(StrategyUse("single", 1, "cpu"), seats=seats)


def joules(where: str, value: float | None, phase: str | None = "train", used: bool | None = True) -> Reading:
    return Reading("energy", where, value, "J", "counter", None if value is not None else "why", phase, used)


def test_energy_of_a_trial_is_that_of_its_own_parts() -> None:
    found = [
        joules("package-0", 5.0),
        joules("cuda:0", 10.0),
        joules("cuda:0", 2.0, "test"),
        joules("cuda:1", 9.0, used=False),
    ]
    assert used_joules(found, trial("cuda:0")) == (17.0, None)
    assert used_joules(found, trial("cuda:0"), ("train",)) == (15.0, None)
    assert used_parts(found, trial("cuda:0")) == ("package-0", "cuda:0")


def test_no_joules_where_a_device_of_the_trial_was_not_read() -> None:
    found = [joules("package-0", 5.0), joules("cuda:0", 10.0), joules("cuda:1", None)]
    assert used_joules(found, trial("cuda:0", "cuda:1")) == (None, "not measured: cuda:1: why")
    missing = [joules("package-0", 5.0), joules("nvml", None, None, None)]
    assert used_joules(missing, trial("cuda:0")) == (None, "not measured: nvml: why")
    assert used_joules([], trial("cpu")) == (None, "not measured: no power meter was asked for")


def test_a_phase_that_is_missing_leaves_no_sum() -> None:
    found = [joules("cuda:0", 10.0), joules("cuda:0", None, "validation")]
    assert used_joules(found, trial("cuda:0"))[0] is None
    assert used_joules(found, trial("cuda:0"), ("train",)) == (10.0, None)


def test_an_unread_processor_is_left_out_of_the_energy_of_devices() -> None:
    found = [joules("package-0", None), joules("cuda:0", 10.0)]
    assert used_joules(found, trial("cuda:0")) == (10.0, None)
    memory_too = [joules("package-0", None), joules("dram-0", 3.0)]
    assert used_joules(memory_too, trial("cpu"))[0] is None
    assert used_joules(found[:1], trial("cpu")) == (None, "not measured: package-0: why")


def run(tmp_path: Path, images: Path, env: dict[str, str], meters: list[str], *more: str) -> dict[str, Any]:
    (tmp_path / "e.toml").write_text(EXPERIMENT.format(images=images, meters=json.dumps(meters)))
    ended = tiny.escala(["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "c"), "--quiet", *more], env)
    assert ended.returncode == 0, ended.stderr
    (record,) = tiny.records(tmp_path / "c")
    return record


def energies(record: dict[str, Any]) -> dict[str, Any]:
    return {one.get("phase"): one for one in record["readings"] if one["what"] == "energy"}


@pytest.mark.slow
def test_a_campaign_with_a_counter(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    record = run(tmp_path, images, env, ["memory", "scripted:steady"])
    found = energies(record)
    assert set(found) == {"train", "validation", "test"}
    # The script takes 100 W: the joules are the phases' seconds.
    for phase, one in found.items():
        assert one["value"] == pytest.approx(100 * record["phases"][f"{phase}_s"], rel=0.05, abs=0.2)
        assert (one["where"], one["how"], one["used"]) == ("package-0", "counter", True)
    idle = [one for one in record["readings"] if one["what"] == "idle power"]
    assert [one["value"] for one in idle] == [pytest.approx(100, rel=0.05)]
    assert record["to_score"]["energy_j"] == pytest.approx(found["train"]["value"] + found["validation"]["value"])
    assert record["to_score"].get("energy_reason") is None
    about, arrays = read_trace(tmp_path / "c" / record["power_trace"])
    assert about.trial == record["id"]
    assert [window.phase for window in about.windows] == ["train", "validation", "test"]
    assert about.idle_w == {"package-0": idle[0]["value"]}
    assert len(arrays["seconds"]) == len(arrays["package-0/joules"])
    assert all(0 < window.begin < window.end < arrays["seconds"][-1] for window in about.windows)


@pytest.mark.slow
def test_one_seat_and_two_read_the_machine_once(tmp_path: Path, images: Path, env: dict[str, str]) -> None:
    two = '\n[[strategy]]\nname = "ddp"\nways = 2\n[measure]'
    text = EXPERIMENT.format(images=images, meters='["memory", "scripted:steady"]').replace("\n[measure]", two)
    (tmp_path / "e.toml").write_text(text)
    ended = tiny.escala(["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "c"), "--quiet"], env)
    assert ended.returncode == 0, ended.stderr
    records = {record["trial"]["label"]: record for record in tiny.records(tmp_path / "c")}
    assert set(records) == {"single", "ddp x2"}
    for record in records.values():
        assert len([one for one in record["readings"] if one["what"] == "energy"]) == 3
        # 100 W, whether one process used them or two.
        train = energies(record)["train"]["value"]
        assert train == pytest.approx(100 * record["phases"]["train_s"], rel=0.05, abs=0.5)
    assert "100" in ended.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("meter", "reason"),
    [
        ("scripted:absent", "no such counter here"),
        ("scripted:backwards", "its counter ran backwards"),
        ("scripted:vanishing", "the file is gone"),
    ],
)
def test_a_meter_that_fails_is_null_with_the_reason_and_the_run_goes_on(
    tmp_path: Path, images: Path, env: dict[str, str], meter: str, reason: str
) -> None:
    record = run(tmp_path, images, env, ["memory", meter], "--set", "measure.idle_s=0")
    found = [one for one in record["readings"] if one["what"] == "energy"]
    assert found
    for one in found:
        assert one["value"] is None
        assert reason in one["reason"]
    assert record["outcome"] == "done"
    assert record["to_score"]["energy_j"] is None
    assert reason in record["to_score"]["energy_reason"]
