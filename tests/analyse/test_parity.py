"""What speed costs of the score: the amount, the rule, and what one run cannot tell."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import recorded as made
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from escala.analyse.bootstrap import difference
from escala.analyse.parity import amount_text, tolerance_text
from escala.analyse.row import Summary
from escala.analyse.summary import summarise
from escala.analyse.verdict import Verdict, judge
from escala.terms.record import Record, Score

KEPT = (0.870, 0.871, 0.872, 0.871, 0.870)
# Three points below, with some spread.
LOST = (0.840, 0.842, 0.841, 0.841, 0.839)


def pair(own: Sequence[float], other: Sequence[float] = KEPT, **more: Any) -> list[Record]:
    """`single` with the scores of `other`, and a fast row with its own."""
    single = made.repeats("single", made.SLOW[: len(other)], other)
    return [*single, *made.repeats("ddp x2", made.FAST[: len(own)], own, ways=2, **more)]


def row_of(records: Sequence[Record], tolerance: float = 0.01) -> Summary:
    return summarise(records, "single", (), tolerance)[1]


def verdict_on(records: Sequence[Record], tolerance: float = 0.01) -> Verdict:
    return judge(summarise(records, "single", (), tolerance))


def as_perplexity(records: Sequence[Record]) -> list[Record]:
    return [replace(one, score=Score("perplexity", one.score.value, 1000, "lower")) for one in records if one.score]


def test_what_was_lost_is_a_difference_with_its_interval() -> None:
    row = row_of(pair(LOST))
    assert row.score_lost is not None
    assert row.score_lost.median == pytest.approx(0.871 - 0.841)
    assert 0.027 < row.score_lost.low < row.score_lost.median < row.score_lost.high < 0.034
    assert row.score_lost.values == pytest.approx([0.871 - value for value in LOST])
    assert summarise(pair(LOST), "single")[0].score_lost is None


def test_a_better_score_is_lost_below_zero() -> None:
    found = row_of(pair([0.9] * 5)).score_lost
    assert found is not None
    assert found.high < 0


def test_of_a_score_that_should_be_low_a_share_is_lost() -> None:
    records = as_perplexity(pair([220.0] * 5, [200.0] * 5))
    found = row_of(records)
    assert found.score_lost is not None
    assert (found.score_lost.median, found.score_lost.low) == pytest.approx((0.1, 0.1))
    assert found.doubts["score below baseline"] == "10 % above (220.0 against 200.0)"
    (told,) = [one for one in verdict_on(records).sentences if "cost" in one]
    assert told.endswith(
        "and cost 10 % more perplexity (220.0 against 200.0): more than the tolerance of 1 %, so it is not ranked."
    )


@pytest.mark.parametrize("tolerance", [0.0, 0.005, 0.029, 0.031, 0.1])
def test_the_tolerance_decides_who_may_win(tolerance: float) -> None:
    records = pair(LOST)
    row = row_of(records, tolerance)
    assert ("score below baseline" in row.doubts) is (tolerance < 0.03)
    assert (verdict_on(records, tolerance).winner == "ddp x2") is (tolerance > 0.03)


def test_the_price_is_named_within_the_tolerance_and_beyond_it() -> None:
    price = "ddp x2 was 1.70x [1.68, 1.72] as fast as single and cost 3.0 points of accuracy (0.8410 against 0.8710)"
    beyond, within = verdict_on(pair(LOST)), verdict_on(pair(LOST), 0.05)
    assert beyond.sentences[1:] == (f"{price}: more than the tolerance of 1 point, so it is not ranked.",)
    assert within.sentences[1:] == (f"{price}, within the tolerance of 5 points.",)


def test_no_price_is_named_for_what_may_be_chance() -> None:
    for scores in (KEPT, (0.84, 0.84, 0.84, 0.871, 0.872), [0.9] * 5):
        assert not any("cost" in sentence for sentence in verdict_on(pair(scores)).sentences)


def test_a_loss_that_repeats_do_not_show_is_no_doubt() -> None:
    row = row_of(pair((0.84, 0.84, 0.84, 0.871, 0.872)))
    assert row.score_lost is not None
    assert row.score_lost.median > 0.01
    assert row.score_lost.low <= 0
    assert not {"score below baseline", "score untested"} & set(row.doubts)


@pytest.mark.parametrize(("own", "other"), [(LOST[:1], KEPT[:1]), (LOST[:1], KEPT), (LOST, KEPT[:1])])
def test_one_run_decides_nothing_and_its_gap_is_shown(own: Sequence[float], other: Sequence[float]) -> None:
    records = pair(own, other)
    row, found = row_of(records), verdict_on(records)
    assert "score below baseline" not in row.doubts
    assert "points below" in row.doubts["score untested"]
    told = [sentence for sentence in found.sentences if sentence.startswith("One run cannot tell")]
    assert len(told) == 1
    assert "whether ddp x2 keeps the accuracy of single: " in told[0]
    assert found.winner is None


def test_one_run_without_a_gap_is_untested_all_the_same() -> None:
    records = pair(KEPT[:1], KEPT[:1])
    assert row_of(records).doubts["score untested"] == "1 run against 1"
    assert not any("cannot tell whether" in sentence for sentence in verdict_on(records).sentences)


def test_a_simulated_row_has_no_speed_to_pay_for() -> None:
    found = verdict_on(pair(LOST, doubts=("simulated",)))
    assert not any("cost" in sentence for sentence in found.sentences)
    assert "its accuracy is 3.0 points below" in found.sentences[1]


@pytest.mark.parametrize(
    ("score", "better", "value", "told"),
    [(0.9, "higher", 0.023, "2.3 points"), (41.5, "higher", 0.5, "0.50"), (40.0, "lower", 0.031, "3.1 %")],
)
def test_amounts_have_the_unit_of_their_score(score: float, better: Any, value: float, told: str) -> None:
    records = [replace(one, score=Score("s", score, 10, better)) for one in made.repeats("single", made.SLOW)]
    (row,) = summarise(records, "single")
    assert amount_text(row, value) == told


@pytest.mark.parametrize(("tolerance", "told"), [(0.01, "1 point"), (0.005, "0.5 points"), (0.02, "2 points")])
def test_a_tolerance_is_told_as_it_was_written(tolerance: float, told: str) -> None:
    assert tolerance_text(row_of(pair(KEPT), tolerance)) == told


VALUES = st.lists(st.floats(-100, 100).map(lambda value: round(value, 3)), min_size=1, max_size=12)


@given(VALUES, VALUES)
def test_a_difference_turned_round_is_the_same_one(ours: list[float], theirs: list[float]) -> None:
    one, other = difference(ours, theirs), difference(theirs, ours)
    assert one.low <= one.median + 1e-9
    assert one.median <= one.high + 1e-9
    assert (one.median, one.low, one.high) == pytest.approx((-other.median, -other.high, -other.low), abs=1e-9)


@given(VALUES)
def test_nothing_differs_from_itself_beyond_chance(values: list[float]) -> None:
    found = difference(values, values)
    assert found.median == 0
    assert found.low <= 0 <= found.high
