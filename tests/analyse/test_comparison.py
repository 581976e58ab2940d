"""Two campaigns set against each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import energetic
import pytest
import recorded as made
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from escala.analyse.comparison import Comparison, compared, refuse_slower
from escala.analyse.pairing import paired, sides_of
from escala.analyse.row import Interval
from escala.analyse.row_change import SAME_WITHIN, verdict_of
from escala.terms.errors import EscalaError, Exit
from escala.terms.record import Record

NAMES = ("old", "new")


def against(before: Sequence[Record], after: Sequence[Record], *, anyway: bool = False) -> Comparison:
    return compared(sides_of(before), sides_of(after), NAMES, same_within=SAME_WITHIN, anyway=anyway)


def scaled(records: Sequence[Record], factor: float) -> list[Record]:
    """The same runs, each so many times as long."""
    return [
        replace(record, phases=replace(record.phases, train_s=record.phases.train_s * factor))
        for record in records
        if record.phases
    ]


def with_execution(records: Sequence[Record], **keys: object) -> list[Record]:
    return [replace(one, trial=replace(one.trial, execution=replace(one.trial.execution, **keys))) for one in records]


def refusal(before: Sequence[Record], after: Sequence[Record], *, anyway: bool = False) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        against(before, after, anyway=anyway)
    assert (caught.value.code, caught.value.exit) == ("RES-COMPARE", Exit.UNTRUSTED)
    return caught.value


def test_a_slower_a_faster_and_an_unchanged_row_are_told_apart() -> None:
    steady = (2.0, 2.004, 1.998, 2.001, 1.999)
    before = [*made.repeats("a", steady), *made.repeats("b", steady, batch=32), *made.repeats("c", steady, batch=16)]
    after = [
        *scaled(made.repeats("a", steady), 1.2),
        *scaled(made.repeats("b", steady, batch=32), 0.8),
        *made.repeats("c", steady, batch=16),
    ]
    found = against(before, after)
    assert [row.verdict for row in found.rows] == ["slower", "faster", "same"]
    slower = found.rows[0].time_ratio
    assert slower is not None
    assert slower.median == pytest.approx((2.0 * 1.2 + 0.3) / 2.3, rel=1e-9)
    assert "1 slower, 1 faster, 1 the same" in found.sentences[0]
    assert found.time_ratio is not None
    ratios = [row.time_ratio.median for row in found.rows if row.time_ratio]
    assert log(found.time_ratio.median) == pytest.approx(sum(map(log, ratios)) / 3, rel=1e-9)


def test_a_row_is_found_again_under_another_name() -> None:
    before = [*made.repeats("plain", made.SLOW), *made.repeats("wide", made.FAST, batch=256)]
    after = [*made.repeats("broad", made.FAST, batch=256), *made.repeats("single", made.SLOW, strategy="plain")]
    found = against(before, with_strategy(after, "broad", "wide"))
    assert [(row.label, row.other_label) for row in found.rows] == [("plain", "single"), ("wide", "broad")]


def with_strategy(records: Sequence[Record], label: str, name: str) -> list[Record]:
    return [
        replace(one, trial=replace(one.trial, strategy=replace(one.trial.strategy, name=name)))
        if one.trial.label == label
        else one
        for one in records
    ]


@pytest.mark.parametrize(
    ("after", "told"),
    [
        (made.repeats("single", made.SLOW, host=made.OTHER_CPU), "device Xeon Test, 2 cores in A, Other Chip"),
        (made.repeats("single", made.SLOW, data=made.GENERATED), "data d1 in A, d2 in B"),
        (made.repeats("single", made.SLOW, batch=128), "batch 64 in A, 128 in B"),
        (made.repeats("single", made.SLOW, epochs=3), "budget 2 epochs in A, 3 epochs in B"),
        (with_execution(made.repeats("single", made.SLOW), precision="bf16"), "precision fp32 in A, bf16 in B"),
        (made.repeats("single", made.SLOW, ways=2), "devices 1 in A, 2 in B"),
    ],
)
def test_what_is_not_alike_is_refused_with_what_differs_unless_told_to(after: list[Record], told: str) -> None:
    before = made.repeats("single", made.SLOW)
    error = refusal(before, after)
    assert told in str(error)
    assert "--anyway" in str(error)
    found = against(before, after, anyway=True)
    assert any(told in text for text in found.rows[0].not_alike)


def test_another_torch_and_another_way_of_running_a_step_are_what_is_compared() -> None:
    before = made.repeats("single", made.SLOW)
    after = with_execution(made.repeats("single", made.FAST, host=made.OTHER_TORCH), compile=True)
    found = against(before, after)
    assert found.around == ("torch: 2.13.0 -> 2.14.0",)
    assert found.rows[0].differs == ("compile false in A, true in B",)
    assert found.rows[0].verdict == "faster"


def test_rows_that_one_campaign_lacks_are_named_and_not_compared() -> None:
    before = [*made.repeats("single", made.SLOW), *made.repeats("ddp x2", made.FAST, ways=2)]
    after = [*made.repeats("single", made.SLOW), *made.repeats("ddp x4", made.FAST, ways=4)]
    found = against(before, after)
    assert [row.label for row in found.rows] == ["single"]
    assert (found.only_before, found.only_after) == (("ddp x2",), ("ddp x4",))


def test_rows_without_times_in_either_are_told_apart_from_those_compared() -> None:
    unfit = made.make("ddp x4", ways=4, outcome="unfit", reason="needs 4", data=None)
    records = [*made.repeats("single", made.SLOW), unfit]
    found = against(records, records)
    assert ([row.label for row in found.rows], found.untimed) == (["single"], ("ddp x4",))


def test_nothing_in_common_is_refused_whatever_was_told() -> None:
    error = refusal(made.repeats("a", made.SLOW), made.repeats("b", made.SLOW, batch=32), anyway=True)
    assert "no row with times is in both" in str(error)


def test_fewer_than_three_runs_tell_nothing() -> None:
    found = against(made.repeats("single", (1.0, 1.0)), made.repeats("single", (9.0, 9.0)))
    assert found.rows[0].verdict == "cannot tell"
    assert found.rows[0].reason == "2 against 2 runs; 3 each are the least"
    assert found.time_ratio is None


def test_a_worse_score_is_said_beside_a_faster_time() -> None:
    before = made.repeats("single", made.SLOW, scores=(0.90, 0.91, 0.905, 0.902, 0.903))
    after = made.repeats("single", made.FAST, scores=(0.80, 0.81, 0.805, 0.802, 0.803))
    found = against(before, after)
    assert (found.rows[0].verdict, found.rows[0].worse_score) == ("faster", True)
    assert any("worse score" in sentence for sentence in found.sentences)
    assert not against(after, before).rows[0].worse_score


def test_a_budget_of_steps_is_compared_by_its_rate() -> None:
    found = against(made.repeats("single", made.SLOW, steps=300), made.repeats("single", made.FAST, steps=300))
    assert (found.rows[0].measure, found.rows[0].verdict) == ("s/sample", "faster")


def test_time_to_score_is_compared_where_both_came_there() -> None:
    before = made.aimed("single", (5, 5, 6, 5, 5))
    assert against(before, made.aimed("single", (3, 3, 3, 2, 3))).rows[0].verdict == "faster"
    never = against(before, made.aimed("single", (None, None, None, 3, 3))).rows[0]
    assert (never.verdict, never.reason) == ("cannot tell", "the two have no time in common")


def test_fail_above_speaks_of_what_is_sure() -> None:
    before = made.repeats("single", made.SLOW)
    found = against(before, scaled(before, 1.2))
    refuse_slower(found, 0.25)
    refuse_slower(against(before, scaled(before, 0.5)), 0.0)
    refuse_slower(against(before[:2], scaled(before[:2], 3)), 0.0)
    with pytest.raises(EscalaError, match=r"single takes 1\.17x") as caught:
        refuse_slower(found, 0.05)
    assert (caught.value.code, caught.value.exit) == ("RES-SLOWER", Exit.UNTRUSTED)


def test_fail_above_does_not_pass_what_no_longer_runs() -> None:
    before = made.repeats("single", made.SLOW)
    after = [made.make("single", number, outcome="failed", reason="killed") for number in range(3)]
    found = against(
        [*before, *made.repeats("b", made.SLOW, batch=32)], [*after, *made.repeats("b", made.SLOW, batch=32)]
    )
    assert [row.broken for row in found.rows] == [True, False]
    assert "no times in B: failed: killed" in found.rows[0].reason
    with pytest.raises(EscalaError, match="single no longer runs"):
        refuse_slower(found, 9.0)


def test_energy_is_set_against_energy_that_was_read_alike() -> None:
    before = energetic.runs("single", [2.0] * 5, {"cuda:0": 100.0}, device="cuda", host=energetic.PAIR)
    after = energetic.runs("single", [2.0] * 5, {"cuda:0": 80.0}, device="cuda", host=energetic.PAIR)
    found = against(before, after).rows[0].energy_ratio
    assert found is not None
    assert found.median == pytest.approx(0.8)
    sampled = energetic.runs("single", [2.0] * 5, {"cuda:0": 80.0}, how="sampled", device="cuda", host=energetic.PAIR)
    assert against(before, sampled).rows[0].energy_ratio is None


ENDS = st.floats(min_value=0.01, max_value=100)


@given(ENDS, ENDS, st.integers(min_value=0, max_value=9))
def test_a_verdict_follows_the_whole_interval(one: float, other: float, runs: int) -> None:
    low, high = sorted((one, other))
    verdict = verdict_of(Interval((low + high) / 2, low, high, (low, high)), runs, SAME_WITHIN)
    mirrored = verdict_of(Interval(2 / (low + high), 1 / high, 1 / low, (low, high)), runs, SAME_WITHIN)
    assert {verdict, mirrored} in ({"slower", "faster"}, {"same"}, {"cannot tell"})
    if verdict == "slower":
        assert low > 1
    if runs < 3:
        assert verdict == "cannot tell"


@given(st.lists(st.sampled_from(["a", "b", "c", "d"]), unique=True, min_size=1))
def test_every_row_is_paired_once_or_left_over(labels: list[str]) -> None:
    before = sides_of([made.make(label, batch=8 + ord(label)) for label in "abc"])
    after = sides_of([made.make(label, batch=8 + ord(label)) for label in labels])
    found = paired(before, after)
    assert {pair.before.row.label for pair in found.pairs} == {"a", "b", "c"} & set(labels)
    assert all(pair.before.row.batch == pair.after.row.batch for pair in found.pairs)
    assert len(found.pairs) + len(found.only_after) == len(labels)
    assert len(found.pairs) + len(found.only_before) == 3
