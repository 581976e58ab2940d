"""What is said about the figures: never more than they show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import recorded as made
from msgspec.structs import replace

from escala.analyse.summary import summarise
from escala.analyse.verdict import NOTHING, Verdict, judge
from escala.terms.doubts import ADVICE
from escala.terms.record import Record


def verdict_on(records: Sequence[Record], baseline: str | None = "single") -> Verdict:
    return judge(summarise(records, baseline))


def versus(times: Sequence[float], label: str = "ddp x2", **more: Any) -> Verdict:
    return verdict_on([*made.repeats("single", made.SLOW), *made.repeats(label, times, **{"ways": 2, **more})])


def test_a_clear_winner_with_its_interval_and_score() -> None:
    found = verdict_on(made.clean_campaign())
    assert found.winner == "ddp x2"
    assert found.sentences == (
        "ddp x2 is fastest: 1.70x [1.68, 1.72] as fast as single over all phases, "
        "1.90x [1.87, 1.92] in training alone, at accuracy 0.8710 against 0.8710.",
    )


def test_the_baseline_may_win() -> None:
    found = verdict_on([*made.repeats("single", made.FAST), *made.repeats("ddp x1", made.SLOW)])
    assert found.winner == "single"
    assert found.sentences == ("single, the baseline, is fastest; the next is ddp x1 (0.59x [0.58, 0.60]).",)


def test_overlapping_intervals_name_no_winner() -> None:
    found = versus((1.97, 1.99, 1.98, 2.02, 1.96))
    assert found.winner is None
    assert "cannot be told apart: their intervals overlap, so no winner is named." in found.sentences[0]
    assert "within noise" in {caution.doubt for caution in found.cautions}


def test_two_fast_rows_that_overlap_name_no_winner_even_far_from_the_baseline() -> None:
    records = [*made.repeats("single", made.SLOW), *made.repeats("a", made.FAST), *made.repeats("b", made.FAST)]
    found = verdict_on(records)
    assert found.winner is None
    assert found.sentences[0].startswith("a (1.70x [1.68, 1.72]) and b (1.70x [1.68, 1.72]) cannot be told apart")


@pytest.mark.parametrize("runs", [1, 2])
def test_two_runs_are_too_few_to_name_a_winner(runs: int) -> None:
    found = versus(made.FAST[:runs])
    assert found.winner is None
    assert "fewer than 3 runs" in found.sentences[0]


def test_a_baseline_of_two_runs_is_too_little_to_beat() -> None:
    found = verdict_on([*made.repeats("single", made.SLOW[:2]), *made.repeats("ddp x2", made.FAST, ways=2)])
    assert found.winner is None


def test_three_runs_that_lie_apart_name_one() -> None:
    assert versus(made.FAST[:3]).winner == "ddp x2"


def test_other_work_is_not_ranked() -> None:
    found = versus(made.FAST, batch=128)
    assert found.winner is None
    assert "batch 128 against 64" in found.sentences[1]
    assert "is not ranked: it did other work" in found.sentences[1]


def test_a_simulated_row_is_not_ranked() -> None:
    found = versus(made.FAST, doubts=("simulated",))
    assert found.winner is None
    assert "is not ranked: its seats shared a device" in found.sentences[1]


def test_a_fast_row_with_a_lower_score_does_not_win_and_its_price_is_named() -> None:
    found = versus(made.FAST, scores=[0.82] * 5)
    assert found.winner is None
    assert found.sentences[1:] == (
        "ddp x2 was 1.70x [1.68, 1.72] as fast as single and cost 5.1 points of accuracy (0.8200 against 0.8710): "
        "more than the tolerance of 1 point, so it is not ranked.",
    )


def test_a_slow_row_with_a_lower_score_bought_nothing_with_it() -> None:
    told = versus((3.0, 3.1, 3.0, 3.1, 3.0), scores=[0.82] * 5).sentences[1]
    assert told.endswith("is not ranked: its accuracy is 5.1 points below (0.8200 against 0.8710).")


def test_what_is_not_ranked_leaves_the_others_their_contest() -> None:
    records = [*made.clean_campaign()]
    records += made.repeats("huge", [0.1] * 5, batch=512, ways=4, host=made.GPUS, device="cuda")
    found = verdict_on(records)
    assert found.winner == "ddp x2"
    assert any(sentence.startswith("huge (") and "not ranked" in sentence for sentence in found.sentences)


def test_a_slower_parallel_row_on_the_same_cores_is_explained_by_its_step() -> None:
    found = versus((6.0, 6.1, 6.2, 6.0, 6.1))
    assert found.winner == "single"
    assert found.sentences[1] == (
        "ddp x2: 2 seats are slower than single here: 0.36x [0.35, 0.37]; a step takes 32.4 ms instead of 10.6 ms, "
        "on the same 2 threads: at this batch the network is too small to pay for the exchange of gradients."
    )


@pytest.mark.parametrize(
    ("times", "more"),
    [
        ((2.4, 2.5, 2.45, 2.4, 2.5), {}),  # slower by less than one more step
        ((6.0, 6.1, 6.2, 6.0, 6.1), {"threads": 2}),  # the threads differ as well
        ((6.0, 6.1, 9.9, 6.0, 6.1), {}),  # unstable
        ((6.0, 6.1, 6.2, 6.0, 6.1), {"seats": 1}),  # one process exchanges no gradients
    ],
)
def test_a_slower_row_is_not_explained_beyond_its_figures(times: tuple[float, ...], more: dict[str, Any]) -> None:
    told = versus(times, **more).sentences[1]
    assert "slower than single here" in told
    assert "too small" not in told


def test_seats_with_the_same_rows_exchange_no_gradients() -> None:
    records = made.repeats("pipeline x2", (6.0, 6.1, 6.2, 6.0, 6.1), ways=2)
    split = []
    for record in records:
        seats = tuple(replace(seat, rows=(0, 64)) for seat in record.trial.seats)
        split.append(replace(record, trial=replace(record.trial, seats=seats)))
    told = verdict_on([*made.repeats("single", made.SLOW), *split]).sentences[1]
    assert told.endswith("too small to pay for what its parts exchange on the way there and back.")


def test_devices_of_their_own_are_expected_to_share_the_step() -> None:
    gpu: dict[str, Any] = {"host": made.GPUS, "device": "cuda"}
    single = made.repeats("single", made.SLOW, **gpu)
    # Half of the step is gone to the second device, so a step of 1.4 costs 0.9 for the exchange: less than a step.
    near = verdict_on([*single, *made.repeats("ddp x2", [2.8] * 5, ways=2, **gpu)])
    far = verdict_on([*single, *made.repeats("ddp x2", [3.2] * 5, ways=2, **gpu)])
    assert "too small" not in near.sentences[1]
    assert "too small to pay for the exchange of gradients" in far.sentences[1]
    assert "threads" not in far.sentences[1]


def test_a_row_that_merely_may_be_slower_is_not_called_slower() -> None:
    assert not any("slower" in sentence for sentence in versus((2.0, 2.01, 1.99, 2.02, 2.03)).sentences)


def test_every_trouble_is_listed_with_its_reason() -> None:
    assert verdict_on(made.troubled_campaign()).sentences[1:] == (
        "ddp x2 failed in 1 of 4 runs: rank 1 was killed by signal 9 (SIGKILL).",
        "wide ran out of memory: std::bad_alloc.",
        "hot diverged: the loss is not finite at step 12 on rank 0.",
        "ddp x4 did not fit: needs 4 CPU cores; this host has 2.",
    )


def test_no_baseline_no_winner() -> None:
    found = verdict_on([*made.repeats("a", made.SLOW), *made.repeats("b", made.FAST)], "single")
    assert found.winner is None
    assert found.sentences == (
        "The baseline single has no times here, so nothing is compared and no winner is named. "
        "By its median b makes most samples a second, 11,429; the next is a with 6,000.",
    )


def test_without_a_baseline_shared_devices_and_a_row_alone_are_not_set_side_by_side() -> None:
    shared = made.repeats("b", made.FAST, doubts=("simulated",))
    (told,) = verdict_on([*made.repeats("a", made.SLOW), *shared], "single").sentences[:1]
    assert told == "The baseline single has no times here, so nothing is compared and no winner is named."


def test_a_baseline_that_failed_compares_nothing() -> None:
    failed = made.make("single", outcome="failed", reason="killed")
    found = verdict_on([failed, *made.repeats("a", made.SLOW), *made.repeats("b", made.FAST)])
    assert found.sentences == (
        "The baseline single has no times here, so nothing is compared and no winner is named. "
        "By its median b makes most samples a second, 11,429; the next is a with 6,000.",
        "single failed: killed.",
    )


def test_one_row_alone_is_no_contest() -> None:
    found = verdict_on(made.repeats("single", made.SLOW))
    assert found.winner is None
    assert found.sentences == ("Only single was timed here, so there is nothing to compare it with.",)


def test_nothing_but_trouble() -> None:
    found = verdict_on([made.make("hot", outcome="diverged", reason="step 3")])
    assert (found.winner, found.sentences) == (None, ("Nothing could be timed here.", "hot diverged: step 3."))


def test_all_runs_disturbed() -> None:
    found = versus(made.FAST, doubts=("disturbed",))
    assert "ddp x2 has no times: no run of it was left undisturbed." in found.sentences
    assert found.winner is None


def test_nothing_recorded() -> None:
    found = verdict_on([])
    assert found == Verdict(None, (), ())
    assert found.sentences == (NOTHING,)


def test_each_sweep_point_has_its_own_ranking() -> None:
    found = verdict_on(made.swept_campaign())
    assert [(standing.heading, standing.winner) for standing in found.standings] == [
        ("train.batch = 64", "single"),
        ("train.batch = 256", "ddp x2"),
    ]
    assert found.winner is None
    assert all(sentence.startswith("train.batch = ") for sentence in found.sentences)


def test_one_winner_everywhere_is_the_winner() -> None:
    found = verdict_on(made.two_hosts())
    assert found.winner == "single"
    assert found.standings[1].heading == "on Other Chip, 2 cores, torch 2.13.0"


def test_a_budget_of_steps_speaks_of_samples_a_second() -> None:
    gpu: dict[str, Any] = {"host": made.GPUS, "device": "cuda", "steps": 300}
    records = made.repeats("single", made.SLOW, **gpu) + made.repeats("ddp x2", made.FAST, ways=2, **gpu)
    found = verdict_on(records)
    assert found.winner == "ddp x2"
    assert found.sentences == ("ddp x2 is fastest: 1.90x [1.87, 1.92] as fast as single by samples a second.",)


def test_every_doubt_present_stands_once_with_its_advice() -> None:
    records = [*made.two_hosts(), *made.repeats("odd", (1.0, 3.0), batch=8, doubts=("busy host",), threads=7)]
    found = verdict_on(records)
    present = {doubt for row in summarise(records, "single") for doubt in row.doubts}
    assert [caution.doubt for caution in found.cautions] == [doubt for doubt in ADVICE if doubt in present]
    assert [caution.mark for caution in found.cautions] == list("abcdef")[: len(present)]
    assert all(caution.advice == ADVICE[caution.doubt] for caution in found.cautions)


def test_a_caution_about_every_row_does_not_list_them() -> None:
    records = made.repeats("single", made.SLOW[:3]) + made.repeats("ddp x2", made.FAST[:3], ways=2)
    (caution,) = verdict_on(records).cautions
    assert (caution.doubt, caution.where) == ("few repeats", "every row: 3 runs")


def test_a_caution_about_many_rows_counts_them() -> None:
    few = [record for n in range(6) for record in made.repeats(f"row {n}", made.FAST[: 2 + n % 2])]
    (caution,) = [
        c for c in verdict_on([*made.repeats("single", made.SLOW), *few]).cautions if c.doubt == "few repeats"
    ]
    assert caution.where == "row 0, row 1, row 2 and 3 others: 2 runs, and 1 other reason"


def test_hostile_names_are_tame_in_sentences() -> None:
    name = "\x1b[31mevil\x1b[0m\n\u202e" + "x" * 300
    told = " ".join(versus(made.FAST, label=name).sentences)
    assert "evil" in told
    assert told.isprintable()
    assert len(told) < 400
