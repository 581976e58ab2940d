"""The shipped experiments."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import escala
from escala.peers import PEERS
from escala.plan import studies
from escala.plan.read import label_of, read, resolved, variations
from escala.terms.errors import EscalaError


def test_the_names_are_those_of_the_files() -> None:
    folder = Path(escala.__file__).parent / "studies"
    assert studies.names() == tuple(sorted(path.stem for path in folder.glob("*.toml")))
    assert "quickstart" in studies.names()


@pytest.mark.parametrize("name", studies.names())
def test_every_study_reads_and_says_what_it_is(name: str) -> None:
    experiment = read(name).experiment
    assert experiment.title
    assert experiment.about
    assert "\t" not in studies.text(name)


@pytest.mark.parametrize("name", studies.names())
def test_every_study_has_a_quick_form_with_the_same_rows(name: str) -> None:
    full, quick = read(name).experiment, read(name, quick=True).experiment
    assert [label_of(strategy) for strategy in quick.strategy] == [label_of(strategy) for strategy in full.strategy]
    assert quick.measure.repeats == 1
    for variation in variations(quick):
        data = variation.experiment.workload.data
        assert data is not None
        assert (data if isinstance(data, str) else data[0]).startswith("synthetic"), "it needs nothing but escala"


@pytest.mark.parametrize(
    "name", ["resnet34-fish", "energy", "resnet34-hyperparameters", "six-pairs", "bert-squad", "frameworks"]
)
def test_a_study_of_a_published_table_has_its_figures_and_a_quick_form_of_all_its_cases(name: str) -> None:
    full, quick = read(name).experiment, read(name, quick=True).experiment
    assert full.published
    assert full.source is not None
    assert [case.name for case in quick.case] == [case.name for case in full.case]
    assert [label_of(strategy) for strategy in quick.strategy] == [label_of(strategy) for strategy in full.strategy]
    assert quick.measure.repeats == 1
    for variation in variations(quick):
        (data,) = variation.experiment.workload.data or ()
        assert data.startswith("synthetic"), "a quick form needs nothing but escala"
        assert "+" in data, "a quick form takes a small part"


FISH = {
    "CPU": 128,
    "1 device": 128,
    "1 device in DDP": 128,
    "2 devices, batch on each": 256,
    "2 devices, batch in all": 128,
    "4 devices, batch on each": 512,
    "4 devices, batch in all": 128,
}
"""Batches of the rows that the studies of the fish have in common."""


def test_the_published_batches_of_the_fish() -> None:
    experiment = read("resnet34-fish").experiment
    batches = {label_of(strategy): resolved(experiment, strategy)[0].batch for strategy in experiment.strategy}
    assert batches == FISH
    assert round(7830 * (experiment.workload.validation or 0), 6) == 180


def test_the_study_of_energy_is_the_thesis_s_table_and_what_it_missed() -> None:
    experiment = read("energy").experiment
    batches = {label_of(strategy): resolved(experiment, strategy)[0].batch for strategy in experiment.strategy}
    assert batches == FISH
    measure = experiment.measure
    assert (measure.repeats, measure.energy_repeats, measure.sample_s, measure.cooldown_s) == (10, 3, 0.5, 60)
    table = {(one.row, one.figure): one.value for one in experiment.published}
    assert len(table) == 16
    assert [table["CPU", figure] for figure in ("energy", "energy with idle", "EDP", "EDP with idle")] == [
        8.48e6,
        1.11e7,
        86.65,
        103.79,
    ]
    assert table["2 devices, batch on each", "EDP with idle"] == 0.51


def test_the_study_of_frameworks_is_the_thesis_s_table_and_one_network_more() -> None:
    thesis, other = (variation.experiment for variation in variations(read("frameworks").experiment))
    assert thesis.workload.options == {"hidden": [192], "activation": "sigmoid", "dropout": 0.0}
    assert (thesis.train.batch, thesis.train.lr, thesis.train.epochs) == (50, 0.5, 8)
    assert (other.workload.options, other.train.batch) == ({"dropout": 0.0}, 64)
    assert [label_of(spec) for spec in thesis.strategy] == ["single", *PEERS, "plain, CPU", "keras, CPU"]


def test_six_pairs_are_six() -> None:
    found = variations(read("six-pairs").experiment)
    assert [(v.experiment.workload.name, v.experiment.train.batch) for v in found] == [
        ("mlp", 64), ("cnn-small", 64), ("cnn-medium", 64), ("resnet18", 64), ("transformer-small", 32),
        ("transformer-lm", 8)]  # fmt: skip


def test_summaries_hold_title_and_about() -> None:
    found = {name: (title, about) for name, title, about in studies.summaries()}
    assert tuple(found) == studies.names()
    experiment = read("quickstart").experiment
    assert found["quickstart"] == (experiment.title, experiment.about.strip())


@pytest.mark.parametrize(
    "name", ["", "quikstart", "../studies/quickstart", "quickstart.toml", "__init__", "/etc/passwd"]
)
def test_a_name_that_is_no_study_opens_nothing(name: str) -> None:
    with pytest.raises(EscalaError) as caught:
        studies.text(name)
    assert caught.value.code == "CFG-FILE"
    assert "quickstart" in caught.value.expected


def test_quickstart_compares_one_device_with_two() -> None:
    experiment = read("quickstart").experiment
    labels = [label_of(strategy) for strategy in experiment.strategy]
    assert labels == ["single", "ddp x1", "ddp x2", "data-parallel x2"]
    assert experiment.measure.baseline == "single"
    assert experiment.workload.data == ("fashion-mnist", "mnist", "synthetic")
    assert len(experiment.about.strip().splitlines()) == 2


def test_studies_are_found_in_a_package_that_is_no_folder(tmp_path: Path) -> None:
    package = Path(escala.__file__).parent
    archive = tmp_path / "escala.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in [*package.glob("*.py"), *package.glob("terms/*.py"), *package.glob("plan/*.py")]:
            file.write(path, Path("escala") / path.relative_to(package))
        for path in package.glob("studies/*"):
            if path.is_file():
                file.write(path, Path("escala") / path.relative_to(package))
    code = (
        f"import sys; sys.path.insert(0, {str(archive)!r})\n"
        "from escala.plan import studies\n"
        "from escala.plan.read import read\n"
        "print(studies.__file__, studies.names(), read('quickstart').experiment.title)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert "escala.zip" in done.stdout
    assert "quickstart" in done.stdout
