"""The command line without any child process: speed of opening, usage errors, the exit codes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from escala.store import journal

sys.path.insert(0, str(Path(__file__).parent / "analyse"))

import recorded as made

from escala.store.campaign import create_or_open
from escala.store.journal import append
from escala.terms.experiment import Experiment, StrategySpec, TrainSpec, WorkloadSpec


def escala(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "escala", *words], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "code",
    [
        "import escala.cli",
        "import escala.run.campaign, escala.run.train, escala.run.meeting, escala.plan.expand, escala.strategies",
        "import escala.report, escala.analyse.summary, escala.analyse.verdict, escala.store.campaign",
    ],
)
def test_the_parent_and_reports_open_without_torch(code: str) -> None:
    check = f"{code}\nimport sys\nassert 'torch' not in sys.modules\nassert 'scipy' not in sys.modules"
    ended = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr


def test_every_verb_has_help_with_an_example() -> None:
    told = escala("--help").stdout
    for verb in ("probe", "studies", "plan", "run", "train", "report", "compare"):
        assert verb in told
        assert f"escala {verb}" in escala(verb, "--help").stdout


def test_studies_lists_quickstart() -> None:
    assert "quickstart" in escala("studies").stdout


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["run"], 2, "error[CFG-USAGE] escala run: Missing argument 'EXPERIMENT'; see escala run --help"),
        (["rnu"], 2, "error[CFG-USAGE]"),
        (["run", "quickstrat", "--out", "x"], 2, "quickstart"),
        (["report", "/no/such/campaign"], 6, "error[RES-CAMPAIGN]"),
        (["plan", "/no/such.toml"], 2, "error[CFG-FILE]"),
        (["compare", "/no/such", "/no/such"], 6, "error[RES-CAMPAIGN]"),
        (["compare", "a", "b", "--format", "html"], 2, "error[CFG-VALUE]"),
        (["compare", "a", "b", "--fail-above", "much"], 2, "such as 5%"),
        (["compare", "a", "b", "--fail-above", "5"], 2, "such as 5%"),
    ],
)
def test_wrong_words_are_one_line_with_a_way_out(words: list[str], code: int, told: str, tmp_path: Path) -> None:
    ended = escala(*words)
    assert (ended.returncode, told in ended.stderr) == (code, True), ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


def test_an_experiment_without_a_quick_form_is_refused_in_one_line_with_a_way_out(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('[workload]\nname = "mlp"\n[train]\nepochs = 1\n[[strategy]]\nname = "single"\n')
    ended = escala("run", str(path), "--quick", "--out", str(tmp_path / "x"))
    assert (ended.returncode, f"error[CFG-QUICK] {path}" in ended.stderr) == (2, True), ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    folder = tmp_path / "c"
    experiment = Experiment(
        WorkloadSpec("mlp"), TrainSpec(epochs=2), (StrategySpec("single"), StrategySpec("ddp", ways=2)), title="Ours"
    )
    log = create_or_open(folder, experiment, "[train]", ("train.epochs=2",), ("escala", "run", "x")).records
    for record in (*made.repeats("single", made.SLOW), *made.repeats("ddp x2", made.FAST, ways=2)):
        append(log, record)
    return folder


def test_a_report_as_a_page_and_its_charts_as_files(
    campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESCALA_CACHE", str(tmp_path / "cache"))
    page, pictures = tmp_path / "report.html", tmp_path / "pictures"
    ended = escala("report", str(campaign), "--out", str(page), "--figures", str(pictures))
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    text = page.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>\n")
    assert all(told in text for told in ("<bdi>Ours</bdi>", "ddp x2", "escala run x", "train.epochs=2"))
    names = {path.stem for path in pictures.iterdir()}
    assert {"phases", "speed-up", "efficiency", "memory", "cost-score", "scaling"} <= names
    assert len(list(pictures.iterdir())) == 3 * len(names)


def test_a_report_in_spanish_but_what_programs_read(
    campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ESCALA_CACHE", str(tmp_path / "cache"))
    page, pictures = tmp_path / "report.html", tmp_path / "pictures"
    words = ("--lang", "es", "--format", "html", "--out", str(page), "--figures", str(pictures))
    ended = escala("report", str(campaign), *words)
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    text = page.read_text(encoding="utf-8")
    assert all(told in text for told in ('<html lang="es">', "<h2>Veredicto</h2>", "ddp x2", "escala run x"))
    assert "aceleración, todas las fases" in (pictures / "speed-up.svg").read_text(encoding="utf-8")
    assert "ddp x2 es la más rápida" in escala("report", str(campaign), "--lang", "es").stdout
    spanish, english = (escala("report", str(campaign), "--format", "json", "--lang", lang) for lang in ("es", "en"))
    assert (spanish.returncode, spanish.stdout) == (0, english.stdout)
    unknown = escala("report", str(campaign), "--lang", "fr")
    assert unknown.returncode == 2
    assert "error[CFG-VALUE] --lang: there is no language 'fr' (one of en, es)" in unknown.stderr


def test_version() -> None:
    assert escala("--version").stdout.startswith("escala 0.")


def test_compare_reads_two_campaigns_and_fails_where_one_is_slower(tmp_path: Path) -> None:
    folder = str(Path(__file__).parent.parent / "results" / "cpu2-quickstart")
    ended = escala("compare", folder, folder, "--fail-above", "5%", "--format", "csv")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert [line.split(",")[0] for line in ended.stdout.splitlines()] == ["row", "single", "ddp x1", "ddp x2"]
    slower = tmp_path / "slower"
    shutil.copytree(folder, slower)
    slow_down(slower / "records.jsonl", 2.0)
    out = tmp_path / "change.md"
    ended = escala("compare", folder, str(slower), "--fail-above", "5%", "--out", str(out))
    assert (ended.returncode, "error[RES-SLOWER]" in ended.stderr) == (6, True), ended.stderr
    assert "slower" in out.read_text()
    assert "| :-- |" in out.read_text()


def test_report_exports_for_other_programs(tmp_path: Path) -> None:
    folder = str(Path(__file__).parent.parent / "results" / "cpu2-quickstart")
    ended = escala("report", folder, "--format", "mlperf")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count('"run_stop"') == 15
    refused = escala("report", folder, "--format", "parquet")
    assert (refused.returncode, "give --out FILE" in refused.stderr) == (2, True)
    pytest.importorskip("pyarrow")
    out = tmp_path / "rows.parquet"
    assert escala("report", folder, "--out", str(out)).returncode == 0
    assert out.read_bytes()[:4] == b"PAR1"


def test_report_writes_event_files_on_request(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    folder = str(Path(__file__).parent.parent / "results" / "cpu2-quickstart")
    ended = escala("report", folder, "--tensorboard", str(tmp_path / "events"))
    assert (ended.returncode, "wrote 15 event files" in ended.stderr) == (0, True), ended.stderr
    assert len([path for path in tmp_path.rglob("*tfevents*") if path.stat().st_size > 1000]) == 15


def slow_down(path: Path, factor: float) -> None:
    """The same records, each training so many times as long."""
    records = journal.read(path).records
    path.unlink()
    for record in records:
        phases = record.phases and replace(record.phases, train_s=record.phases.train_s * factor)
        journal.append(path, replace(record, phases=phases))
