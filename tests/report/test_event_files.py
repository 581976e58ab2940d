"""TensorBoard's event files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import recorded as made
from msgspec.structs import replace

from escala.report.event_files import event_files, scalars_of
from escala.terms.errors import EscalaError
from escala.terms.record import Epoch, Record


def trial(name: str = "single-r0") -> Record:
    epochs = tuple(Epoch(1.0, 0.5 - n / 10, f"o{n}", 0.05, 0.8 + n / 10) for n in range(2))
    return replace(made.make(), id=name, started="2025-11-28T03:22:00+00:00", epochs=epochs)


def read_back(path: Path) -> list[Any]:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    return list(loader.LegacyEventFileLoader(str(path)).Load())


def test_curves_are_told_by_step_and_by_epoch() -> None:
    found = list(scalars_of(trial()))
    told = [(scalar.tag, scalar.step, scalar.value) for scalar in found]
    assert [one for one in told if one[0] == "loss"] == [("loss", 1, 2.3), ("loss", 2, 1.1)]
    assert [one for one in told if one[0] == "epoch/validation score"] == [
        ("epoch/validation score", 1, 0.8),
        ("epoch/validation score", 2, 0.9),
    ]
    assert ("test/accuracy", 188, 0.87) in told
    start = 1_764_300_120 + 3
    assert [scalar.at_s for scalar in found[:2]] == [start + 1, start + 2]


def test_files_read_back_as_tensorboard_reads_them(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    ((name, content),) = event_files([trial(), made.make(outcome="failed", reason="killed")])
    assert name == "single-r0/events.out.tfevents.1764300120.escala"
    path = tmp_path / "events.out.tfevents.1"
    path.write_bytes(content)
    first, *events = read_back(path)
    assert first.file_version == "brain.Event:2"
    values = [(event.summary.value[0].tag, event.step) for event in events]
    assert values == [(scalar.tag, scalar.step) for scalar in scalars_of(trial())]
    assert events[0].summary.value[0].simple_value == pytest.approx(2.3)


@pytest.mark.parametrize("name", ["../../etc/passwd", "/root/x", "..", "", "a b\n", "x" * 300])
def test_a_trial_s_id_leads_nowhere_else(name: str) -> None:
    pytest.importorskip("tensorboard")
    for path, _ in event_files([trial(name), trial(name)]):
        folder, _, file = path.partition("/")
        assert "/" not in file
        assert folder not in ("", ".", "..")
        assert len(folder) < 150
    assert len({path for path, _ in event_files([trial(name), trial(name)])}) == 2


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "tensorboard"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(EscalaError, match=r"escala\[tensorboard\]") as caught:
        list(event_files([trial()]))
    assert caught.value.code == "ENV-EXTRA"


def test_writing_them_loads_neither_torch_nor_tensorflow() -> None:
    pytest.importorskip("tensorboard")
    code = (
        "import sys\n"
        "from tensorboard.summary.writer import record_writer\n"
        "from tensorboard.compat.proto import event_pb2, summary_pb2\n"
        "assert not {'torch', 'tensorflow'} & sys.modules.keys()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
