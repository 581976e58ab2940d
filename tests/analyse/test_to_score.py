"""Time to score: censored medians, who may win, and what is said of runs that never came there."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any

import pytest
import recorded as made
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from escala.analyse.bootstrap import interval, ratio
from escala.analyse.row import Summary
from escala.analyse.summary import summarise
from escala.analyse.verdict import Verdict, judge
from escala.terms.record import Record

# Epochs of a second each, and validation of a tenth.
STEADY = (4, 4, 5, 4, 4)


def rows_of(records: Sequence[Record], **more: Any) -> dict[str, Summary]:
    return {row.label: row for row in summarise(records, "single", **more)}


def versus(epochs: Sequence[int | None], single: Sequence[int | None] = STEADY, **more: Any) -> list[Record]:
    """A faster row with these epochs to its target, against a baseline."""
    return [*made.aimed("single", single), *made.aimed("ddp x2", epochs, **{"ways": 2, "epoch_s": 0.5, **more})]


def verdict_on(records: Sequence[Record]) -> Verdict:
    return judge(summarise(records, "single"))


def test_time_and_epochs_to_score_are_medians_over_runs() -> None:
    row = rows_of(versus(STEADY))["ddp x2"]
    assert (row.target, row.target_name, row.reached, row.tried) == (0.9, "accuracy", 5, 5)
    assert row.to_score_s is not None
    assert row.to_score_epochs is not None
    assert row.to_score_s.median == pytest.approx(2.4)
    assert row.to_score_epochs.median == 4


def test_a_run_that_never_came_there_is_the_longest_of_all() -> None:
    row = rows_of(versus((4, 3, None, 5, 4)))["ddp x2"]
    assert (row.reached, row.tried) == (4, 5)
    assert row.to_score_epochs is not None
    # Left out, it would make the median 4 as well, and the interval end at 5.
    assert (row.to_score_epochs.median, row.to_score_epochs.low, row.to_score_epochs.high) == (4, 3, inf)


@pytest.mark.parametrize("epochs", [(None, None, None, 4, 4), (None, None, 4, 4), (None,) * 5])
def test_too_few_runs_leave_no_median(epochs: tuple[int | None, ...]) -> None:
    row = rows_of(versus(epochs))["ddp x2"]
    assert row.to_score_s is not None
    assert row.to_score_s.median == inf
    assert row.speedup_to_score is None


def test_rows_that_end_at_different_steps_did_the_same_work() -> None:
    rows = rows_of(versus((2, 3, 2, 3, 3)))
    assert "other work" not in rows["ddp x2"].doubts
    assert (rows["ddp x2"].steps, rows["ddp x2"].samples) == (None, None)
    wide = rows_of(versus(STEADY, batch=128))["ddp x2"]
    assert "other work" not in wide.doubts


def test_another_target_is_other_work() -> None:
    other = rows_of(versus(STEADY, until=0.8))["ddp x2"]
    assert other.doubts["other work"] == "until accuracy 0.8 against until accuracy 0.9"
    assert other.speedup_to_score is None
    none = rows_of([*made.aimed("single", STEADY), *made.repeats("ddp x2", made.FAST, ways=2)])["ddp x2"]
    assert none.doubts["other work"] == "no target against until accuracy 0.9"


def test_the_speed_up_is_that_of_time_to_score_and_of_samples_a_second() -> None:
    rows = rows_of(versus((8, 8, 10, 8, 8)))
    row = rows["ddp x2"]
    assert row.speedup_to_score is not None
    assert row.speedup_train is not None
    assert row.speedup_total is None
    assert rows["single"].speedup_to_score is not None
    assert rows["single"].speedup_to_score.median == 1
    # Twice the epochs at half the time each, and as much validation again.
    assert row.speedup_to_score.median == pytest.approx(4.4 / 4.8)
    assert row.speedup_train.median == pytest.approx(2)


def test_a_row_that_is_sooner_there_wins() -> None:
    assert verdict_on(versus(STEADY, epoch_s=1.0)).winner is None
    found = verdict_on([*made.aimed("single", (8, 8, 9, 8, 8)), *made.aimed("ddp x2", STEADY, ways=2)])
    assert found.winner == "ddp x2"
    assert found.sentences == (
        "ddp x2 came to accuracy 0.9 first: 2.00x [1.60, 2.25] as fast as single, in 4.40 [4.40, 5.50] s and "
        "4 epochs against 8.80 [8.80, 9.90] s and 8 epochs.",
    )


def test_more_epochs_can_outweigh_faster_ones() -> None:
    found = verdict_on(versus((9, 9, 9, 10, 9), (4, 4, 4, 4, 4)))
    assert found.winner == "single"
    assert found.sentences[0] == "single, the baseline, came to accuracy 0.9 first."
    assert found.sentences[1].startswith("ddp x2: 2 seats are slower than single here: 0.81x")


def test_a_row_that_mostly_never_comes_there_cannot_win() -> None:
    single = (8, 8, 9, 8, 8)
    found = verdict_on([*made.aimed("single", single), *made.aimed("ddp x2", (1, 1, None, None, None), ways=2)])
    assert found.winner is None
    assert found.sentences == (
        "Too few rows came to accuracy 0.9 to be ranked, so no winner is named.",
        "ddp x2 (no speed-up) is not ranked: 2 of 5 runs reached accuracy 0.9 within 10 epochs, "
        "so its time to score is never.",
    )
    (caution,) = [one for one in found.cautions if one.doubt == "target missed"]
    assert caution.where == "ddp x2: 2 of 5 runs reached accuracy 0.9 within 10 epochs"


def test_a_row_that_missed_it_once_is_ranked_and_it_is_said() -> None:
    records = [*made.aimed("single", (8, 8, 9, 8, 8)), *made.aimed("ddp x2", (*[2] * 8, None), ways=2)]
    found = verdict_on(records)
    assert found.winner == "ddp x2"
    assert found.sentences[1] == (
        "ddp x2: 8 of 9 runs reached accuracy 0.9 within 10 epochs; the others count as never."
    )


def test_a_baseline_that_mostly_never_comes_there_compares_nothing() -> None:
    found = verdict_on([*made.aimed("single", (None,) * 5), *made.aimed("ddp x2", STEADY, ways=2)])
    assert found.winner is None
    assert found.sentences == (
        "The baseline single has no time to score (0 of 5 runs reached accuracy 0.9 within 10 epochs), so nothing is "
        "compared and no winner is named: raise train.epochs or lower train.until. "
        "ddp x2 (in 4.40 [4.40, 5.50] s and 4 epochs) came there.",
    )


def test_a_diverged_run_never_came_there_and_a_crash_says_nothing() -> None:
    records = made.aimed("single", STEADY)
    hot = [replace(one, outcome="diverged", phases=None) for one in made.aimed("hot", (None,) * 2)]
    crashed = made.aimed("hot", (None,) * 3, outcome="failed", reason="killed")[2:]
    row = rows_of([*records, *hot, *crashed])["hot"]
    assert (row.reached, row.tried) == (0, 2)


def test_a_disturbed_run_counts_for_what_it_reached_alone() -> None:
    records = made.aimed("single", (4, 4, 4))
    records.append(replace(made.aimed("single", (4, 4, 4, 9))[3], doubts=("disturbed",)))
    row = rows_of(records)["single"]
    assert (row.reached, row.tried) == (4, 4)
    assert row.to_score_s is not None
    assert row.to_score_s.values == pytest.approx([4.4] * 3)


def test_runs_that_end_at_different_epochs_are_not_unstable_for_it() -> None:
    assert "unstable" not in rows_of(made.aimed("single", (2, 8, 4, 9, 3)))["single"].doubts
    uneven = [*made.aimed("single", (4, 4, 4, 4)), made.aimed("single", [4] * 5, epoch_s=3.0)[4]]
    told = rows_of(uneven)["single"].doubts["unstable"]
    assert told == "training times an epoch of 5 runs: one of 3.00 s against a median of 1.00 s"


def test_lower_can_be_better() -> None:
    more: dict[str, Any] = {"until": 50.0, "metric": "perplexity", "better": "lower", "scores": [50.0] * 5}
    records = [*made.aimed("single", (8, 8, 9, 8, 8), **more), *made.aimed("ddp x2", (4, 4, None, 4, 4), **more)]
    found = verdict_on(records)
    assert found.winner is None  # the interval of a row that missed it once in five goes on to never
    assert rows_of(records)["ddp x2"].doubts["target missed"] == "4 of 5 runs reached perplexity 50 within 10 epochs"
    assert "target missed" not in rows_of(records)["single"].doubts


def test_a_campaign_without_a_target_says_nothing_of_it() -> None:
    row = rows_of(made.repeats("single", made.SLOW))["single"]
    assert (row.target, row.reached, row.to_score_s, row.speedup_to_score) == (None, None, None, None)


SOME = st.lists(st.sampled_from([1.0, 2.0, 3.0, 5.0, inf]), min_size=1, max_size=12)


@given(SOME)
def test_never_behaves_as_a_very_long_time(values: list[float]) -> None:
    found = interval(values, never=True)
    long = interval([min(value, 1e9) for value in values])
    # The middle of 3 and of something endless is endless; of 3 and 1e9 it is half of that.
    assert [end == inf for end in (found.median, found.low, found.high)] == [
        end >= 4e8 for end in (long.median, long.low, long.high)
    ]
    assert found.low <= found.median <= found.high


@given(SOME, SOME)
def test_a_ratio_of_what_may_never_be_is_as_wide_as_it_must(above: list[float], below: list[float]) -> None:
    if interval(above, never=True).median == inf or interval(below, never=True).median == inf:
        with pytest.raises(ValueError, match="finite"):
            ratio(above, below, never=True)
        return
    found = ratio(above, below, never=True)
    long = ratio([min(value, 1e9) for value in above], [min(value, 1e9) for value in below])
    assert found.low <= long.low * (1 + 1e-9)
    assert found.high >= long.high * (1 - 1e-9)
    assert found.low <= found.median <= found.high


def test_never_is_refused_where_nothing_may_be_endless() -> None:
    with pytest.raises(ValueError, match="finite"):
        interval([1.0, inf])
