"""A campaign's folder is made once, opened again for the same trials only, and holds no secrets."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import escala
from escala.store import journal
from escala.store.campaign import (
    SCHEMA,
    Campaign,
    create_or_open,
    open_campaign,
    read_asked,
    read_host,
    read_records,
    write_host,
)
from escala.store.files import TEMPORARY, names_in
from escala.store.lock import hold
from escala.terms.errors import EscalaError, Exit
from escala.terms.experiment import Experiment, StrategySpec
from escala.terms.host import Device, Host
from escala.terms.published import PublishedSpec, SourceSpec
from escala.terms.record import Record
from escala.terms.trial import Trial

COMMAND = ("escala", "run", "e.toml")
HOST = Host("some cpu", 2, 1 << 30, "Linux", (Device("cuda", 0, "a card", 80 << 30),), {"torch": "2.13.0"})


def make(folder: Path, experiment: Experiment) -> Campaign:
    return create_or_open(folder, experiment, "[train]\nbatch = 64\n", ("train.batch=64",), COMMAND)


def changed(experiment: Experiment, part: str, **keys: Any) -> Experiment:
    return msgspec.structs.replace(experiment, **{part: msgspec.structs.replace(getattr(experiment, part), **keys)})


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


# --- made


def test_a_new_folder_holds_what_was_asked_for(tmp_path: Path, experiment: Experiment) -> None:
    campaign = make(tmp_path / "runs" / "a", experiment)
    assert campaign.folder == tmp_path / "runs" / "a"
    assert campaign.records == campaign.folder / "records.jsonl"
    assert campaign.logs.is_dir()
    asked = read_asked(campaign)
    assert asked.experiment == experiment
    assert asked.source == "[train]\nbatch = 64\n"
    assert asked.overrides == ("train.batch=64",)
    assert asked.command == "escala run e.toml"
    assert list(json.loads(campaign.experiment.read_bytes())) == [
        "schema",
        "experiment",
        "source",
        "overrides",
        "command",
        "quick",
    ]
    assert read_records(campaign) == journal.Journal()
    assert read_host(campaign) is None


def test_the_folder_stays_the_same_when_the_process_moves(
    tmp_path: Path, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    campaign = make(Path("a"), experiment)
    monkeypatch.chdir("/")
    assert campaign.folder == tmp_path / "a"
    assert read_asked(campaign).experiment == experiment


def test_what_is_there_before_the_first_file_does_not_hinder(tmp_path: Path, experiment: Experiment) -> None:
    (tmp_path / f"{TEMPORARY}0123").write_text("killed in the middle")
    with hold(tmp_path):
        campaign = make(tmp_path, experiment)
    assert read_asked(campaign).experiment == experiment


def test_the_host_and_the_records_come_back(
    tmp_path: Path, experiment: Experiment, make_record: Callable[..., Record]
) -> None:
    campaign = make(tmp_path, experiment)
    write_host(campaign, HOST)
    journal.append(campaign.records, make_record("a"))
    assert read_host(open_campaign(tmp_path)) == HOST
    assert read_records(open_campaign(tmp_path)).records == (make_record("a"),)
    assert read_records(campaign, curves=False).records[0].losses == ()


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_number_that_is_not_finite_is_refused_before_start(
    tmp_path: Path, experiment: Experiment, number: float
) -> None:
    bad = changed(experiment, "workload", options={"layers": [{"rate": number}]})
    with pytest.raises(EscalaError, match=r"CFG-RANGE\] workload\.options\.layers\[0\]\.rate: is not a finite"):
        make(tmp_path / "a", bad)
    assert not (tmp_path / "a").exists()


# --- opened again


def test_the_same_experiment_goes_on_and_writes_nothing(tmp_path: Path, experiment: Experiment) -> None:
    make(tmp_path, experiment)
    before = contents(tmp_path)
    assert make(tmp_path, experiment).folder == tmp_path
    assert contents(tmp_path) == before


def test_whole_numbers_for_floats_and_tuples_for_lists_are_no_change(tmp_path: Path, experiment: Experiment) -> None:
    make(tmp_path, changed(experiment, "train", lr=1.0))
    make(tmp_path, changed(experiment, "train", lr=1))


def test_defaults_that_came_later_are_no_change(tmp_path: Path, experiment: Experiment) -> None:
    campaign = make(tmp_path, experiment)
    older = json.loads(campaign.experiment.read_bytes())
    del older["experiment"]["measure"], older["command"]
    campaign.experiment.write_text(json.dumps(older))
    make(tmp_path, experiment)


@pytest.mark.parametrize(
    ("part", "keys", "said"),
    [
        ("train", {"batch": 128}, "train.batch is 64 there and 128 now"),
        ("train", {"epochs": None, "steps": 9}, "train.epochs is 2 there and None now, train.steps is None there"),
        ("workload", {"options": {}}, "workload.options.dropout is 0.0 there and nothing now"),
        ("workload", {"options": {"dropout": 0.0, "wide": 1}}, "workload.options.wide is nothing there and 1 now"),
        ("workload", {"options": {"dropout": False}}, "workload.options.dropout is 0.0 there and False now"),
        ("workload", {"data": ("a", "b")}, "workload.data is None there and ['a', 'b'] now"),
        ("execution", {"precision": "fp64"}, "execution.precision is 'fp32' there and 'fp64' now"),
        ("measure", {"block_s": 0.5}, "measure.block_s is 0.25 there and 0.5 now"),
    ],
)
def test_another_experiment_is_refused_and_named(
    tmp_path: Path, experiment: Experiment, part: str, keys: dict[str, Any], said: str
) -> None:
    make(tmp_path, experiment)
    before = contents(tmp_path)
    with pytest.raises(EscalaError) as caught:
        make(tmp_path, changed(experiment, part, **keys))
    assert (caught.value.code, caught.value.exit) == ("CFG-CAMPAIGN", Exit.CONFIG)
    assert str(caught.value).startswith(f"escala: error[CFG-CAMPAIGN] {tmp_path}: holds another experiment: {said}")
    assert str(caught.value).endswith("; use another --out folder")
    assert contents(tmp_path) == before


@pytest.mark.parametrize(("there", "step"), [(True, "give --quick"), (False, "leave out --quick")])
def test_the_quick_form_is_another_experiment(tmp_path: Path, experiment: Experiment, there: bool, step: str) -> None:
    campaign = create_or_open(tmp_path, experiment, "", (), COMMAND, quick=there)
    assert read_asked(campaign).quick is there
    create_or_open(tmp_path, experiment, "", (), COMMAND, quick=there)
    with pytest.raises(EscalaError) as caught:
        create_or_open(tmp_path, experiment, "", (), COMMAND, quick=not there)
    assert caught.value.code == "CFG-CAMPAIGN"
    assert caught.value.next_step.startswith(step)


def test_what_others_published_may_change(tmp_path: Path, experiment: Experiment) -> None:
    make(tmp_path, experiment)
    entry = PublishedSpec("single", "score", 0.8)
    make(tmp_path, msgspec.structs.replace(experiment, published=(entry,), source=SourceSpec("a paper")))
    campaign = make(tmp_path, msgspec.structs.replace(experiment, source=SourceSpec("a paper", "a machine")))
    assert read_asked(campaign).experiment.source == SourceSpec("a paper", "a machine")


def test_strategies_are_named_by_their_place(tmp_path: Path, experiment: Experiment) -> None:
    make(tmp_path, experiment)
    wider = msgspec.structs.replace(experiment, strategy=(StrategySpec("single"), StrategySpec("ddp", ways=4)))
    with pytest.raises(EscalaError, match=r"strategy\[1\]\.ways is 2 there and 4 now"):
        make(tmp_path, wider)
    shorter = msgspec.structs.replace(experiment, strategy=(StrategySpec("single"),))
    with pytest.raises(EscalaError, match=r"strategy\[1\] is \{'name': 'ddp'.*… there and nothing now"):
        make(tmp_path, shorter)


def test_many_differences_are_counted(tmp_path: Path, experiment: Experiment) -> None:
    make(tmp_path, experiment)
    other = changed(experiment, "workload", options={f"option{number}": number for number in range(20)})
    with pytest.raises(EscalaError, match=r"option3 is nothing there and 3 now and 16 more;"):
        make(tmp_path, other)


def test_care_and_words_may_change_and_are_kept(tmp_path: Path, experiment: Experiment) -> None:
    make(tmp_path, experiment)
    more = changed(experiment, "measure", repeats=9, tolerance=0.02, cooldown_s=0.0, heartbeat_s=30.0, stall_s=60.0)
    rows = (msgspec.structs.replace(more.strategy[0], repeats=2), *more.strategy[1:])
    more = msgspec.structs.replace(more, title="longer", about="more repeats", strategy=rows)
    campaign = create_or_open(tmp_path, more, "new text", (), ("escala", "run", "again"))
    asked = read_asked(campaign)
    assert asked.experiment == more
    assert (asked.source, asked.overrides, asked.command) == ("new text", (), "escala run again")


# --- refused places


def test_a_folder_of_other_things_is_not_filled(tmp_path: Path, experiment: Experiment) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(EscalaError) as caught:
        make(tmp_path, experiment)
    assert (caught.value.code, caught.value.exit) == ("CFG-CAMPAIGN", 2)
    assert "'thesis.tex' is in it" in str(caught.value)
    assert contents(tmp_path) == {"thesis.tex": b"years of work"}
    with pytest.raises(EscalaError, match="CFG-CAMPAIGN"), hold(tmp_path):
        make(tmp_path, experiment)
    assert contents(tmp_path) == {"thesis.tex": b"years of work"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("file", "Not a directory"),
        ("file/inside", "Not a directory"),
        ("loop", "Too many levels of symbolic links"),
        ("broken", "No such file or directory"),
        ("n" * 300, "File name too long"),
    ],
)
def test_a_place_that_cannot_be_a_folder_is_named(
    tmp_path: Path, experiment: Experiment, name: str, words: str
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "broken").symlink_to(tmp_path / "nowhere")
    with pytest.raises(EscalaError) as caught:
        make(tmp_path / name, experiment)
    assert (caught.value.code, caught.value.exit) == ("ENV-DISK", 4)
    assert f"{tmp_path / name}: cannot write: {words}" in str(caught.value)


def test_logs_that_cannot_be_a_folder_are_named(tmp_path: Path, experiment: Experiment) -> None:
    campaign = make(tmp_path, experiment)
    campaign.logs.rmdir()
    campaign.logs.write_text("x")
    with pytest.raises(EscalaError, match=r"ENV-DISK.*logs: cannot write: Not a directory"):
        make(tmp_path, experiment)


def test_a_read_only_place_is_named(small_disk: Callable[[str], Path], experiment: Experiment) -> None:
    place = small_disk("size=64k")
    (place / "empty").mkdir()
    small_disk("ro")
    for folder in (place / "new", place / "empty"):
        with pytest.raises(EscalaError, match=r"ENV-DISK.*Read-only file system"):
            make(folder, experiment)


def test_a_full_disk_leaves_no_campaign_and_takes_it_once_it_has_grown(
    small_disk: Callable[[str], Path], experiment: Experiment
) -> None:
    place = small_disk("size=64k")
    folder = place / "campaign"
    folder.mkdir()
    (place / "filler").write_bytes(b"f" * 65_536)
    with pytest.raises(EscalaError, match=r"ENV-DISK.*experiment\.json: cannot write: No space left on device"):
        make(folder, experiment)
    assert names_in(folder) == set()
    small_disk("size=1m")
    assert read_asked(make(folder, experiment)).experiment == experiment


# --- opened for a report


def test_a_report_needs_a_campaign(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    for name, words in {
        "none": "does not exist",
        "empty": "no experiment.json in it",
        "file": "is no folder",
    }.items():
        with pytest.raises(EscalaError) as caught:
            open_campaign(tmp_path / name)
        assert (caught.value.code, caught.value.exit) == ("RES-CAMPAIGN", 6)
        assert words in str(caught.value)
        assert "--out folder of an escala run" in str(caught.value)
    assert names_in(tmp_path) == {"file", "empty"}


def test_a_folder_of_campaigns_names_them(tmp_path: Path, experiment: Experiment) -> None:
    (tmp_path / "other").mkdir()
    for number in range(6):
        make(tmp_path / f"run-{number}", experiment)
        with pytest.raises(EscalaError, match="give one of those in it: run-0") as caught:
            open_campaign(tmp_path)
    assert str(caught.value).endswith("run-0, run-1, run-2, run-3, run-4 and 1 more")
    with pytest.raises(EscalaError, match="--out folder of an escala run"):
        open_campaign(tmp_path / "other")


def test_opening_writes_nothing(tmp_path: Path, experiment: Experiment) -> None:
    make(tmp_path, experiment).logs.rmdir()
    before = names_in(tmp_path)
    open_campaign(tmp_path)
    assert names_in(tmp_path) == before


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"schema":1}', b'{"schema":1,"experiment":{"x":1}}', b"[" * 100_000]
)
def test_a_damaged_description_is_refused(tmp_path: Path, experiment: Experiment, content: bytes) -> None:
    campaign = make(tmp_path, experiment)
    campaign.experiment.write_bytes(content)
    campaign.host.write_bytes(content)
    for attempt in (lambda: read_asked(campaign), lambda: read_host(campaign), lambda: make(tmp_path, experiment)):
        with pytest.raises(EscalaError, match=r"RES-CAMPAIGN.* cannot be understood"):
            attempt()
    assert campaign.experiment.read_bytes() == content


def test_a_newer_campaign_is_named_with_our_schema(tmp_path: Path, experiment: Experiment) -> None:
    campaign = make(tmp_path, experiment)
    campaign.experiment.write_text(json.dumps({"schema": SCHEMA + 4, "experiment": "of a new kind"}))
    with pytest.raises(EscalaError, match=f"schema {SCHEMA + 4}, this version reads up to {SCHEMA}") as caught:
        read_asked(campaign)
    assert (caught.value.code, caught.value.exit) == ("RES-SCHEMA", 6)


# --- secrets


def test_no_secret_reaches_any_file(
    tmp_path: Path,
    experiment: Experiment,
    make_record: Callable[..., Record],
    make_trial: Callable[..., Trial],
) -> None:
    hidden = "Pa55-of-mine"
    address = f"postgres://me:{hidden}@db/x"
    options = {"source": address, "api_key": hidden, "deep": [{"token": hidden}], "tokens": 5, "eos_token": "<end>"}
    secretive = changed(experiment, "workload", options=options, data=address)
    campaign = create_or_open(
        tmp_path,
        secretive,
        f'[workload]\ndata = "{address}"\noptions = {{ api_key = "{hidden}" }}\n',
        (f"workload.options.api_key={hidden}", f"workload.data={address}"),
        ("escala", "run", "e.toml", "--set", f"workload.options.api_key={hidden}", "--token", hidden, address),
    )
    write_host(campaign, msgspec.structs.replace(HOST, environment={"NCCL_SOCKET_IFNAME": address}))
    reason = f"ValueError: cannot reach {address} with token={hidden}"
    journal.append(campaign.records, make_record(trial=make_trial(options=options), reason=reason))
    files = contents(tmp_path)
    assert len(files) == 3
    assert not [name for name, content in files.items() if hidden.encode() in content]
    kept = read_records(campaign).records[0]
    hidden_options = {"source": "postgres://***@db/x", "api_key": "***", "deep": [{"token": "***"}]}
    assert kept.trial.options == {**hidden_options, "tokens": 5, "eos_token": "<end>"}
    assert kept.reason == "ValueError: cannot reach postgres://***@db/x with token=***"
    assert "--token '***'" in read_asked(campaign).command
    # A new password is not another experiment.
    create_or_open(tmp_path, changed(secretive, "workload", data="postgres://me:new@db/x"), "", (), COMMAND)


def test_the_store_opens_without_torch() -> None:
    script = (
        "import sys\n"
        "from escala.store import campaign, changes, files, journal, lock, plain, scrub\n"
        "print([name for name in ('torch', 'numpy', 'rich', 'typer') if name in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(escala.__file__).parents[1])}
    command = [sys.executable, "-c", script]
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == "[]\n"
