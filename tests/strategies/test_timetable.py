"""Timetables of pipelines: everything once, in an order that can be kept, and no more on the way than allowed."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from escala.strategies.timetable import Act, bubble, timetable
from escala.terms.experiment import PipelineSchedule

Shape = tuple[PipelineSchedule, int, int, int]


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    schedule = draw(st.sampled_from(["gpipe", "1f1b", "interleaved"]))
    chunks = draw(st.integers(2, 4)) if schedule == "interleaved" else 1
    return schedule, draw(st.integers(2, 6)), chunks, draw(st.integers(1, 20))


@given(shapes())
def test_everything_is_computed_once_by_its_holder_and_sent_to_who_needs_it(shape: Shape) -> None:
    _, seats, chunks, microbatches = shape
    last = seats * chunks - 1
    rows = timetable(*shape)
    acts = Counter(act for row in rows for act in row)
    assert set(acts.values()) == {1}
    for way in ("forward", "backward"):
        for number in range(microbatches):
            for stage in range(last + 1):
                assert Act("compute", way, stage, number) in rows[stage % seats]
                # Ahead all but the last send, and all but the first receive; back it is the other way round.
                sends, receives = (stage < last, stage > 0) if way == "forward" else (stage > 0, stage < last)
                assert (Act("send", way, stage, number) in rows[stage % seats]) is sends
                assert (Act("receive", way, stage, number) in rows[stage % seats]) is receives


@given(shapes())
def test_no_seat_waits_for_ever_even_where_a_sender_waits_for_its_receiver(shape: Shape) -> None:
    _, seats, chunks, _ = shape
    last = seats * chunks - 1
    rows = timetable(*shape)
    at = [0] * seats
    done = set[Act]()

    def partner(act: Act) -> tuple[int, Act]:
        step = 1 if (act.verb == "send") == (act.way == "forward") else -1
        verb = "receive" if act.verb == "send" else "send"
        return (act.stage + step) % seats, act._replace(verb=verb, stage=act.stage + step)

    while any(place < len(row) for place, row in zip(at, rows, strict=True)):
        before = list(at)
        for seat, row in enumerate(rows):
            if at[seat] == len(row):
                continue
            act = row[at[seat]]
            if act.verb == "compute":
                needs = (
                    ([Act("receive", "forward", act.stage, act.microbatch)] if act.stage else [])
                    if act.way == "forward"
                    else [Act("compute", "forward", act.stage, act.microbatch)]
                    + ([Act("receive", "backward", act.stage, act.microbatch)] if act.stage < last else [])
                )
                assert done.issuperset(needs), f"{act} before what it needs"
            else:
                other, counterpart = partner(act)
                if act.verb == "send":
                    assert Act("compute", act.way, act.stage, act.microbatch) in done
                if rows[other][at[other] : at[other] + 1] != (counterpart,):
                    continue
                at[other] += 1
                done.add(counterpart)
            at[seat] += 1
            done.add(act)
        assert at != before, (
            f"all wait: {[row[place] for place, row in zip(at, rows, strict=True) if place < len(row)]}"
        )


@given(shapes())
def test_only_so_many_microbatches_are_on_the_way(shape: Shape) -> None:
    schedule, seats, chunks, microbatches = shape
    for seat, row in enumerate(timetable(*shape)):
        most = now = 0
        for act in row:
            if act.verb == "compute":
                now += 1 if act.way == "forward" else -1
                most = max(most, now)
        after = seats - seat - 1
        allowed = {
            "gpipe": microbatches,
            "1f1b": after + 1,
            "interleaved": 2 * after + (chunks - 1) * seats + 1,
        }[schedule]
        assert most <= allowed
        assert now == 0
        if schedule == "1f1b":
            assert most == min(microbatches, allowed)


@given(shapes())
def test_gradients_of_a_stage_add_up_in_the_order_of_the_rows(shape: Shape) -> None:
    _, seats, chunks, microbatches = shape
    for seat, row in enumerate(timetable(*shape)):
        for stage in range(seat, seats * chunks, seats):
            for way in ("forward", "backward"):
                order = [a.microbatch for a in row if (a.verb, a.way, a.stage) == ("compute", way, stage)]
                assert order == list(range(microbatches))


def test_the_order_of_one_forward_one_backward_is_the_published_one() -> None:
    computed = ["".join("FB"[a.way == "backward"] + str(a.microbatch) for a in row if a.verb == "compute") for row in
                timetable("1f1b", 4, 1, 5)]  # fmt: skip
    assert computed == [
        "F0F1F2F3B0F4B1B2B3B4",
        "F0F1F2B0F3B1F4B2B3B4",
        "F0F1B0F2B1F3B2F4B3B4",
        "F0B0F1B1F2B2F3B3F4B4",
    ]


@pytest.mark.parametrize("schedule", ["gpipe", "1f1b"])
def test_the_bubble_is_that_of_the_papers(schedule: PipelineSchedule) -> None:
    # (p - 1) / (m + p - 1)
    assert bubble(schedule, 4, 1, 8) == pytest.approx(3 / 11)
    assert bubble(schedule, 2, 1, 1) == pytest.approx(1 / 2)


@given(st.integers(2, 6), st.integers(2, 4), st.integers(1, 4))
def test_interleaving_divides_it_by_the_chunks(seats: int, chunks: int, groups: int) -> None:
    # For whole groups of as many microbatches as there are seats: (p - 1) / (v m + p - 1).
    microbatches = groups * seats
    found = bubble("interleaved", seats, chunks, microbatches)
    assert found == pytest.approx((seats - 1) / (chunks * microbatches + seats - 1))


@given(st.integers(2, 6), st.integers(2, 4), st.integers(1, 20))
def test_interleaving_never_makes_it_larger(seats: int, chunks: int, microbatches: int) -> None:
    assert bubble("interleaved", seats, chunks, microbatches) <= bubble("1f1b", seats, 1, microbatches) + 1e-12
