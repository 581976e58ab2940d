"""Every rule of the closed list: when it speaks, when it is silent, and at the edge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import recorded as made
from msgspec.structs import replace

from escala.analyse.doubts import RULES
from escala.analyse.row import Summary
from escala.analyse.summary import summarise
from escala.terms.doubts import ADVICE, Doubt
from escala.terms.record import Record, Score

EVEN = (2.0, 2.0, 2.0, 2.0, 2.0)


def only(records: Sequence[Record]) -> Summary:
    (row,) = summarise(records)
    return row


def against_single(label: str = "ddp x2", times: Sequence[float] = made.FAST, **more: Any) -> Summary:
    """A row set against five runs of `single`."""
    records = [*made.repeats("single", made.SLOW), *made.repeats(label, times, **{"ways": 2, **more})]
    return next(row for row in summarise(records, "single") if row.label == label)


def test_a_clean_row_raises_no_doubt() -> None:
    assert only(made.repeats("single", made.SLOW)).doubts == {}
    assert against_single().doubts == {}


def test_the_rules_and_the_records_make_up_the_closed_list() -> None:
    seen_while_running = {"simulated", "not warm", "disturbed", "busy host", "shared process"}
    seen_while_running |= {"shared device", "throttled", "short energy window", "energy estimated", "limited memory"}
    assert set(RULES) | seen_while_running | {"within noise"} == set(ADVICE)


@pytest.mark.parametrize(
    "doubt",
    [
        *("simulated", "not warm", "disturbed", "busy host", "shared process"),
        *("shared device", "throttled", "short energy window", "energy estimated", "energy disagrees"),
    ],
)
def test_what_a_record_carries_is_kept_and_counted(doubt: Doubt) -> None:
    records = [*made.repeats("single", made.SLOW), made.make("single", 5, doubts=(doubt,))]
    assert only(records).doubts == {doubt: "in 1 of 6 runs"}


@pytest.mark.parametrize(("runs", "speaks"), [(1, True), (4, True), (5, False)])
def test_few_repeats(runs: int, speaks: bool) -> None:
    assert ("few repeats" in only(made.repeats("single", EVEN[:runs])).doubts) is speaks


def test_disturbed_runs_do_not_count_as_repeats() -> None:
    records = [*made.repeats("single", EVEN[:4]), made.make("single", 4, doubts=("disturbed",))]
    assert only(records).doubts["few repeats"] == "4 runs"


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ((2.0, 2.0, 2.0, 2.0, 3.0), "one of 3.00 s against a median of 2.00 s"),
        ((2.0, 2.0, 2.0, 2.0, 1.0), "one of 1.00 s against a median of 2.00 s"),
        ((9.0, 10.0, 11.0), "standard deviation 10.0 % of the mean"),
        ((1.7, 2.0, 2.0, 2.0, 2.3), "standard deviation 10.6 % of the mean"),
    ],
)
def test_unstable_repeats(times: tuple[float, ...], reason: str) -> None:
    assert only(made.repeats("single", times)).doubts["unstable"] == f"training times of {len(times)} runs: {reason}"


@pytest.mark.parametrize("times", [(1.8, 2.0, 2.0, 2.0, 2.2), (2.0, 2.0, 2.0, 2.0, 2.4), (2.0,)])
def test_steady_enough_repeats(times: tuple[float, ...]) -> None:
    assert "unstable" not in only(made.repeats("single", times)).doubts


def test_blocks_that_vary_within_one_run() -> None:
    records = [*made.repeats("single", EVEN[:4]), made.make("single", 4, blocks=(0.25, 0.25, 0.25, 0.4))]
    told = only(records).doubts["unstable"]
    assert told == "block times within a run: one of 0.400 s against a median of 0.250 s"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"train_s": 0.19}, "training lasted 0.190 s"),
        ({"test_s": 0.0009}, "the test lasted 0.900 ms"),
        ({"validation_s": 0.0005}, "validation lasted 0.500 ms"),
        ({"blocks": (0.25, 0.0009)}, "a block lasted 0.900 ms"),
    ],
)
def test_short_blocks(more: dict[str, Any], told: str) -> None:
    assert only([made.make(**more)]).doubts["short blocks"] == told


def test_a_phase_that_a_trial_did_not_have_is_not_short() -> None:
    assert "short blocks" not in only([made.make(validation_s=None, test_s=None, train_s=0.2)]).doubts


def test_other_work_names_what_differs() -> None:
    assert against_single(batch=128).doubts["other work"] == "batch 128 against 64, 94 steps against 188"
    told = against_single(epochs=4).doubts["other work"]
    assert told == "376 steps against 188, 24,000 samples against 12,000"


def test_equal_steps_of_another_batch_are_other_work() -> None:
    records = made.repeats("single", EVEN, steps=300) + made.repeats("wide", EVEN, steps=300, batch=128)
    assert (
        summarise(records, "single")[1].doubts["other work"] == "batch 128 against 64, 38,304 samples against 19,152"
    )


def test_the_seats_of_one_batch_are_the_same_work() -> None:
    assert "other work" not in against_single(ways=2).doubts


def test_other_threads_count_over_all_seats() -> None:
    assert against_single(threads=2).doubts["other threads"] == "4 against 2"
    assert "other threads" not in against_single(threads=1).doubts


def test_threads_that_only_feed_accelerators_are_no_doubt() -> None:
    common: dict[str, Any] = {"host": made.GPUS, "device": "cuda"}
    records = [*made.repeats("single", made.SLOW, **common)]
    records += made.repeats("ddp x2", made.FAST, ways=2, threads=2, **common)
    assert all("other threads" not in row.doubts for row in summarise(records, "single"))


def test_score_below_baseline_says_by_how_much() -> None:
    row = against_single(scores=(0.820, 0.821, 0.819, 0.820, 0.822))
    assert row.doubts["score below baseline"] == "5.1 points below (0.8200 against 0.8710)"


@pytest.mark.parametrize(
    "scores",
    [
        (0.861, 0.862, 0.861, 0.861, 0.861),  # one point below, no more
        (0.85, 0.85, 0.85, 0.8705, 0.8705),  # more, but the intervals overlap
        (0.90, 0.90, 0.90, 0.90, 0.90),  # better
    ],
)
def test_a_score_near_the_baselines_is_no_doubt(scores: tuple[float, ...]) -> None:
    assert "score below baseline" not in against_single(scores=scores).doubts


def test_a_score_little_more_than_a_point_below_is_a_doubt() -> None:
    assert "score below baseline" in against_single(scores=[0.858] * 5).doubts


def test_the_point_allowed_is_not_lost_to_rounding() -> None:
    records = made.repeats("single", EVEN, [0.87] * 5) + made.repeats("ddp x2", made.FAST, [0.86] * 5, ways=2)
    assert "score below baseline" not in summarise(records, "single")[1].doubts


def test_within_noise_names_the_fastest() -> None:
    records = made.repeats("single", made.SLOW) + made.repeats("ddp x2", (1.99, 1.985, 2.01, 2.0, 1.97), ways=2)
    rows = {row.label: row for row in summarise(records, "single")}
    assert rows["single"].doubts == {"within noise": "cannot be told apart from ddp x2"}


def test_generated_data_is_named() -> None:
    assert only(made.repeats("single", EVEN, data=made.GENERATED)).doubts == {"generated data": "synthetic"}


def test_other_host_says_what_differs() -> None:
    rows = summarise([*made.repeats("single", EVEN), *made.repeats("single", EVEN, host=made.OTHER_TORCH)])
    assert [row.doubts for row in rows] == [{}, {"other host": "torch 2.14.0 against torch 2.13.0"}]
    rows = summarise([*made.repeats("single", EVEN, host=made.GPUS), *made.repeats("single", EVEN)])
    assert rows[1].doubts == {"other host": "2 cores against 8 cores, 4 x cuda Test GPU"}


def test_a_row_that_was_never_done_carries_no_comparison() -> None:
    records = [
        *made.repeats("single", EVEN),
        made.make("wide", batch=4096, outcome="out of memory", reason="no room"),
    ]
    assert summarise(records, "single")[1].doubts == {}


def test_doubts_stand_in_the_order_of_the_closed_list() -> None:
    row = against_single(times=(1.0, 2.0), doubts=("busy host", "simulated"), data=made.DATA, batch=128, threads=4)
    assert list(row.doubts) == [doubt for doubt in ADVICE if doubt in row.doubts]
    assert len(row.doubts) == 6


def perplexities(*values: float) -> list[Record]:
    """Runs of which the score is better the lower it is."""
    scored = made.repeats("ddp x2", made.FAST, ways=2)
    return [
        replace(record, score=Score("perplexity", value, 1000, "lower"))
        for record, value in zip(scored, values, strict=True)
    ]


@pytest.mark.parametrize(
    ("values", "told"),
    [
        # As low as the baseline's, much lower, and within a hundredth of it.
        ((200.0, 201.0, 202.0, 203.0, 204.0), None),
        ((100.0, 101.0, 102.0, 103.0, 104.0), None),
        ((202.0, 203.0, 203.5, 203.9, 204.5), None),
        ((230.0, 231.0, 232.0, 233.0, 234.0), "15 % above (232.0 against 202.0)"),
    ],
)
def test_a_score_that_should_be_low_is_worse_above(values: tuple[float, ...], told: str | None) -> None:
    single = [
        replace(record, score=Score("perplexity", value, 1000, "lower"))
        for record, value in zip(made.repeats("single", made.SLOW), (200.0, 201.0, 202.0, 203.0, 204.0), strict=True)
    ]
    row = summarise([*single, *perplexities(*values)], "single")[1]
    assert row.doubts.get("score below baseline") == told


def test_the_share_allowed_is_of_the_baseline() -> None:
    single = [
        replace(record, score=Score("perplexity", 200.0, 1000, "lower"))
        for record in made.repeats("single", made.SLOW)
    ]
    assert "score below baseline" not in summarise([*single, *perplexities(*[202.0] * 5)], "single")[1].doubts
    assert "score below baseline" in summarise([*single, *perplexities(*[202.1] * 5)], "single")[1].doubts
