"""Lines in the form of MLPerf's training logs."""

from __future__ import annotations

import json
from typing import Any

import pytest
import recorded as made
from msgspec.structs import replace
from shown import HOSTILE

from escala.report.mlperf import mlperf_lines
from escala.terms.record import Epoch, Record

BEGAN_MS = 1_764_300_120_000


def trial() -> Record:
    epochs = tuple(Epoch(1.0, 0.5, f"o{n}", 0.05, 0.8 + n / 10) for n in range(2))
    return replace(made.make(), started="2025-11-28T03:22:00+00:00", epochs=epochs)


def lines(*records: Record) -> list[dict[str, Any]]:
    text = mlperf_lines(records)
    assert all(line.startswith(":::MLLOG {") for line in text.splitlines())
    return [json.loads(line.removeprefix(":::MLLOG ")) for line in text.splitlines()]


def test_every_line_has_the_six_fields_in_order() -> None:
    fields = ["namespace", "time_ms", "event_type", "key", "value", "metadata"]
    assert all(list(line) == fields for line in lines(trial()))


def test_a_run_is_told_in_order_with_times_from_its_durations() -> None:
    told = [(line["key"], line["time_ms"] - BEGAN_MS) for line in lines(trial()) if "INTERVAL" in line["event_type"]]
    assert told == [
        ("init_start", 0),
        ("init_stop", 3000),
        ("run_start", 3000),
        ("epoch_start", 3000),
        ("epoch_stop", 4000),
        ("eval_start", 4000),
        ("eval_stop", 4050),
        ("epoch_start", 4050),
        ("epoch_stop", 5050),
        ("eval_start", 5050),
        ("eval_stop", 5100),
        ("eval_start", 5100),
        ("eval_stop", 5300),
        ("run_stop", 5300),
    ]


def test_the_recipe_and_scores_are_points_in_time() -> None:
    points = {line["key"]: line["value"] for line in lines(trial()) if line["event_type"] == "POINT_IN_TIME"}
    assert points == {
        "submission_benchmark": "mlp",
        "global_batch_size": 64,
        "train_samples": 6000,
        "eval_samples": 1000,
        "seed": 0,
        "gradient_accumulation_steps": 1,
        "opt_name": "sgd",
        "opt_base_learning_rate": 0.05,
        "opt_weight_decay": 0.0,
        "opt_learning_rate_warmup_steps": 0,
        "eval_accuracy": 0.87,
    }


def test_a_run_to_a_score_ends_where_it_came_there_and_its_test_is_no_part_of_it() -> None:
    (there,) = made.aimed("single", [2])
    keys = [line["key"] for line in lines(there)]
    assert keys.index("run_stop") < keys.index("eval_accuracy")
    (never,) = made.aimed("single", [None])
    assert [line["metadata"]["status"] for line in lines(there, never) if line["key"] == "run_stop"] == [
        "success",
        "aborted",
    ]


def test_what_ended_early_is_aborted_and_what_never_began_has_no_lines() -> None:
    failed = replace(made.make(outcome="failed", reason="killed"), wall_s=7.0, started="2025-11-28T03:22:00+00:00")
    last = lines(failed)[-1]
    assert (last["key"], last["time_ms"]) == ("run_stop", BEGAN_MS + 7000)
    assert last["metadata"] == {"status": "aborted", "outcome": "failed", "reason": "killed"}
    assert lines(made.make(outcome="unfit", reason="no GPU")) == []


def test_every_interval_that_begins_ends() -> None:
    open_: dict[tuple[str, str], int] = {}
    for line in lines(trial(), *made.troubled_campaign()):
        if line["event_type"] != "POINT_IN_TIME":
            name = (line["namespace"], line["key"].rpartition("_")[0])
            open_[name] = open_.get(name, 0) + (1 if line["event_type"] == "INTERVAL_START" else -1)
            assert open_[name] in (0, 1)
    assert set(open_.values()) == {0}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_within_their_line(name: str) -> None:
    text = mlperf_lines(made.repeats(name, made.SLOW[:1]))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert lines(*made.repeats(name, made.SLOW[:1]))
