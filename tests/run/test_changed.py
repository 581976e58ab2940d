"""A campaign that goes on with other data is refused."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import tiny

from escala.plan.expand import trials, workloads_of
from escala.plan.preflight import Facts, MetricName, Preflight
from escala.plan.read import parse
from escala.run.changed import refuse_changed_data
from escala.terms.errors import EscalaError
from escala.terms.host import Host
from escala.terms.record import DataUse, Record
from escala.terms.trial import Trial

TEXT = """
[workload]
name = "mlp"
data = "{images}"
[train]
batch = 64
epochs = 1
[[strategy]]
name = "single"
[measure]
repeats = {repeats}
cooldown_s = 0
[sweep]
"workload.limit" = [300, 400]
"""
HOST = Host(cpu="c", cores=2, memory_bytes=1, system="s")


def found(digest: str) -> tuple[tuple[Trial, ...], Preflight]:
    experiment = parse(TEXT.format(images="d", repeats=2), "e.toml").experiment
    use = DataUse("d", "real", "w", digest, {"train": 300, "validation": 0, "test": 1}, 10)
    facts = tuple(Facts(spec, "d", use, 1, 1, (MetricName("accuracy"),)) for spec in workloads_of(experiment))
    before = Preflight(HOST, facts)
    return trials(experiment, before), before


def recorded(all_of_them: tuple[Trial, ...], before: Preflight) -> dict[str, Record]:
    return {
        trial.id: Record(id=trial.id, trial=trial, outcome="done", host=HOST, data=before.facts[0].use)
        for trial in all_of_them
    }


def test_other_rows_under_the_same_name_are_refused() -> None:
    earlier, before = found("1" * 64)
    later, now = found("2" * 64)
    with pytest.raises(EscalaError) as caught:
        refuse_changed_data(recorded(earlier[:1], before), later, now)
    assert (caught.value.code, caught.value.exit, caught.value.where) == ("DATA-HASH", 6, "d")
    assert f"{'1' * 12} then, {'2' * 12} now" in caught.value.what


def test_the_same_rows_and_rows_that_were_never_seen_are_no_change() -> None:
    everything, before = found("1" * 64)
    refuse_changed_data(recorded(everything, before), everything, before)
    refuse_changed_data({}, everything, before)
    failed = {id_: msgspec.structs.replace(r, outcome="failed") for id_, r in recorded(everything, before).items()}
    refuse_changed_data(failed, everything, found("2" * 64)[1])


def test_a_finished_part_of_a_campaign_is_left_alone() -> None:
    earlier, before = found("1" * 64)
    later, now = found("2" * 64)
    done = {id_: r for id_, r in recorded(earlier, before).items() if r.trial.limit == 300}
    refuse_changed_data(done, [trial for trial in later if trial.limit == 400], now)


@pytest.mark.slow
def test_files_that_change_between_repeats_stop_the_campaign(tmp_path: Path, env: dict[str, str]) -> None:
    images = tiny.write_images(tmp_path / "images")
    words = ["run", str(tmp_path / "e.toml"), "--out", str(tmp_path / "c"), "--quiet"]
    (tmp_path / "e.toml").write_text(TEXT.format(images=images, repeats=1))
    assert tiny.escala(words, env).returncode == 0
    before = (tmp_path / "c" / "records.jsonl").read_bytes()
    tiny.write_images(images, train=601)
    (tmp_path / "e.toml").write_text(TEXT.format(images=images, repeats=2))
    refused = tiny.escala(words, env)
    assert refused.returncode == 6
    assert "error[DATA-HASH]" in refused.stderr
    assert (tmp_path / "c" / "records.jsonl").read_bytes() == before
