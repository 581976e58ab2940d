"""Rows of the table: what is put together, compared with what, in which order."""

from __future__ import annotations

import math

import msgspec
import pytest
import recorded as made

from escala.analyse.row import Summary
from escala.analyse.summary import summarise
from escala.terms.errors import EscalaError
from escala.terms.record import Phases, Record, Score


def by_label(records: list[Record], baseline: str | None = "single") -> dict[str, Summary]:
    return {row.label: row for row in summarise(records, baseline)}


def test_nothing_recorded_gives_no_row() -> None:
    assert summarise([]) == ()
    assert summarise([made.make(outcome="interrupted")]) == ()


def test_the_figures_of_one_row() -> None:
    row = by_label(made.clean_campaign())["ddp x2"]
    assert (row.workload, row.data, row.origin, row.strategy, row.device) == (
        "mlp",
        "fashion-mnist",
        "real",
        "ddp",
        "cuda",
    )
    assert (row.ways, row.seats, row.batch, row.seat_batch, row.threads) == (2, 2, 64, (32, 32), 8)
    assert (row.epochs, row.steps, row.samples, row.precision) == (2, 188, 12_000, "fp32")
    assert row.train_s is not None
    assert (row.train_s.median, row.train_s.values) == (1.05, made.FAST)
    assert row.epoch_s is not None
    assert row.epoch_s.median == pytest.approx(0.525)
    assert row.total_s is not None
    assert row.total_s.median == pytest.approx(1.35)
    assert row.score is not None
    assert (row.score.median, row.score_name) == (0.871, "accuracy")
    assert (row.parameters, row.runs, row.attempts) == (669_706, 5, 5)
    assert (row.devices, row.memory_bytes) == (("cuda:0", "cuda:1"), {"cuda:0": 300 * 2**20, "cuda:1": 300 * 2**20})
    assert (row.peak_bytes, row.host_bytes) == (300 * 2**20, None)


def test_speedup_and_efficiency_for_all_phases_and_for_training() -> None:
    row = by_label(made.clean_campaign())["ddp x2"]
    assert row.speedup_train is not None
    assert row.speedup_train.median == pytest.approx(2.00 / 1.05)
    assert row.speedup_total is not None
    assert row.speedup_total.median == pytest.approx(2.30 / 1.35)
    assert row.efficiency_train is not None
    assert row.efficiency_train.median == pytest.approx(2.00 / 1.05 / 2)
    assert row.efficiency_total is not None
    assert row.efficiency_total.low == pytest.approx(row.speedup_total.low / 2)


def test_efficiency_counts_ways_over_the_baselines_ways() -> None:
    records = made.repeats("ddp x2", made.SLOW, ways=2) + made.repeats("ddp x4", made.FAST, ways=4)
    row = by_label(records, "ddp x2")["ddp x4"]
    assert row.efficiency_train is not None
    assert row.efficiency_train.median == pytest.approx(2.00 / 1.05 / 2)


def test_the_baseline_is_one_and_says_so() -> None:
    row = by_label(made.clean_campaign())["single"]
    assert row.is_baseline
    assert row.speedup_total is not None
    assert (row.speedup_total.low, row.speedup_total.median, row.speedup_total.high) == (1, 1, 1)


def test_without_a_name_the_first_recorded_run_with_times_is_the_baseline() -> None:
    failed = made.make("wide", outcome="failed", reason="gone")
    rows = by_label([failed, *made.repeats("ddp x2", made.FAST, ways=2), *made.repeats("single", made.SLOW)], None)
    assert {row.baseline for row in rows.values()} == {"ddp x2"}
    assert rows["ddp x2"].is_baseline


def test_a_baseline_without_times_compares_nothing() -> None:
    rows = by_label(made.repeats("ddp x2", made.FAST, ways=2), "single")
    assert rows["ddp x2"].speedup_total is None
    assert not rows["ddp x2"].is_baseline
    assert rows["ddp x2"].baseline == "single"


def test_a_baseline_counts_within_its_own_sweep_point() -> None:
    rows = summarise(made.swept_campaign(), "single")
    assert [(row.point["train.batch"], row.label) for row in rows] == [
        (64, "single"),
        (64, "ddp x2"),
        (256, "single"),
        (256, "ddp x2"),
    ]
    slower, faster = rows[1].speedup_train, rows[3].speedup_train
    assert slower is not None
    assert faster is not None
    assert slower.median < 0.4
    assert faster.median > 1.8


def test_hosts_are_compared_within_themselves() -> None:
    rows = summarise(made.two_hosts(), "single")
    assert [row.likeness[0] for row in rows] == ["Xeon Test", "Xeon Test", "Other Chip", "Other Chip"]
    assert rows[3].speedup_train is not None
    assert rows[3].speedup_train.median == pytest.approx(1.0 / 1.3)


def test_other_torch_is_not_averaged() -> None:
    records = made.repeats("single", made.SLOW) + made.repeats("single", made.FAST, host=made.OTHER_TORCH)
    rows = summarise(records, "single")
    assert [row.train_s.median for row in rows if row.train_s] == [2.0, 1.05]


def test_data_that_changed_between_repeats_are_refused() -> None:
    changed = msgspec.structs.replace(made.DATA, digest="d9")
    records = made.repeats("single", made.SLOW) + made.repeats("single", made.FAST, data=changed)
    with pytest.raises(EscalaError) as caught:
        summarise(records, "single")
    assert (caught.value.code, caught.value.exit, caught.value.where) == ("DATA-HASH", 6, "single")
    assert "5 runs saw d1, 5 runs saw d9" in caught.value.what


def test_other_data_of_another_row_or_host_are_only_set_apart() -> None:
    changed = msgspec.structs.replace(made.DATA, digest="d9")
    records = [
        *made.repeats("single", made.SLOW),
        *made.repeats("ddp x2", made.FAST, ways=2, data=changed),
        *made.repeats("single", made.FAST, host=made.OTHER_CPU, data=changed),
    ]
    assert [(row.label, row.digest) for row in summarise(records, "single")] == [
        ("single", "d1"),
        ("ddp x2", "d9"),
        ("single", "d9"),
    ]


def test_blocks_stand_in_the_order_of_the_points_given() -> None:
    points = ({"train.batch": 256}, {"train.batch": 64})
    rows = summarise(made.swept_campaign(), "single", points)
    assert [row.point["train.batch"] for row in rows] == [256, 256, 64, 64]
    # What is not among them follows, by value.
    assert summarise(made.swept_campaign(), "single", points[1:])[0].point == {"train.batch": 64}


def test_further_scores_and_the_data_are_put_together() -> None:
    data = msgspec.structs.replace(made.DATA, padding=0.25, skipped=2)
    records = [
        msgspec.structs.replace(record, other_scores=(Score("exact match", value, 10),), prepare_s=value)
        for record, value in zip(made.repeats("single", made.SLOW, data=data), (0.1, 0.2, 0.3, 0.4, 0.5), strict=True)
    ]
    (row,) = summarise(records, "single")
    assert (row.other_scores["exact match"].median, row.prepare_s, row.padding, row.skipped) == (0.3, 0.5, 0.25, 2)


def test_rows_stand_baseline_first_then_by_ways_with_the_unmeasured_last() -> None:
    assert [row.label for row in summarise(made.troubled_campaign(), "single")] == [
        "single",
        "ddp x2",
        "wide",
        "hot",
        "ddp x4",
    ]


def test_outcomes_and_the_first_reason_are_kept() -> None:
    rows = by_label(made.troubled_campaign())
    assert rows["ddp x2"].outcomes == {"done": 3, "failed": 1}
    assert rows["ddp x2"].reason == "rank 1 was killed by signal 9 (SIGKILL)"
    assert (rows["ddp x4"].outcomes, rows["ddp x4"].runs) == ({"unfit": 1}, 0)
    assert "cut" not in rows


def test_a_remark_on_a_done_run_is_no_reason() -> None:
    done = msgspec.structs.replace(made.make(), reason="remark")
    row = by_label([done, made.make("single", 1, outcome="failed", reason="killed")])["single"]
    assert row.reason == "killed"


def test_disturbed_runs_give_scores_but_no_times() -> None:
    disturbed = made.make("single", 5, train_s=99.0, score=0.5, doubts=("disturbed",))
    row = by_label([*made.repeats("single", made.SLOW), disturbed])["single"]
    assert row.train_s is not None
    assert max(row.train_s.values) < 3
    assert row.score is not None
    assert len(row.score.values) == 6
    assert (row.runs, row.attempts) == (5, 6)


def test_a_budget_of_steps_compares_rates() -> None:
    records = made.repeats("single", made.SLOW, steps=300)
    records += made.repeats("wide", [2 * time for time in made.SLOW], steps=300, batch=256)
    rows = by_label(records)
    assert rows["wide"].total_s is None
    assert rows["wide"].speedup_total is None
    assert rows["wide"].epoch_s is None
    assert rows["wide"].speedup_train is not None
    assert rows["wide"].speedup_train.median == pytest.approx(2.0)


def test_samples_count_the_short_last_batch_once() -> None:
    # 6,000 rows in batches of 64: 94 steps an epoch, the last one of 48 rows.
    for steps, samples in ((10, 640), (93, 5952), (94, 6000), (95, 6064), (188, 12_000)):
        (row,) = summarise([made.make(steps=steps)])
        assert row.samples == samples


def test_memory_is_the_highest_peak_by_device() -> None:
    peaks = ({"cuda:0": 5, "cuda:1": 9}, {"cuda:0": 7, "cuda:1": 8})
    (row,) = summarise([made.make("single", n, memory=peak) for n, peak in enumerate(peaks)])
    assert row.memory_bytes == {"cuda:0": 7, "cuda:1": 9}


def test_where_memory_ran_out_the_peak_is_shown() -> None:
    ended = msgspec.structs.replace(made.make(outcome="out of memory"), memory_bytes={"cpu": 11})
    (row,) = summarise([ended])
    assert row.memory_bytes == {"cpu": 11}


@pytest.mark.parametrize("time", [0.0, -1.0, math.nan, math.inf])
def test_a_time_that_cannot_be_is_no_time(time: float) -> None:
    bad = msgspec.structs.replace(made.make("single", 5), phases=Phases(time))
    row = by_label([*made.repeats("single", made.SLOW), bad])["single"]
    assert row.train_s is not None
    assert row.train_s.values == made.SLOW
    assert row.runs == 5


def test_records_without_curves_serve_as_well() -> None:
    slim = [msgspec.structs.replace(record, losses=(), block_seconds=()) for record in made.clean_campaign()]
    assert summarise(slim, "single") == summarise(made.clean_campaign(), "single")


def test_rows_stand_as_the_experiment_wrote_them_and_those_without_times_last() -> None:
    records = [*made.repeats("b", made.FAST, ways=2), *made.repeats("a", made.SLOW), *made.repeats("c", made.FAST)]
    records += [made.make("d", outcome="failed", reason="why"), *made.repeats("base", made.SLOW)]
    found = summarise(records, "base", labels=("c", "d", "b", "base"))
    assert [row.label for row in found] == ["base", "c", "b", "a", "d"]
    assert [row.label for row in summarise(records, "base")] == ["base", "a", "c", "b", "d"]
