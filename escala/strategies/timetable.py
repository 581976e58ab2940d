"""Who computes and sends what, and in which order, in one step of a pipeline. Arithmetic alone: no torch."""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

from escala.terms.experiment import PipelineSchedule

Way = Literal["forward", "backward"]

BACKWARD = 2
"""How long the way back of a stage takes, in ways forward; only the order in the timetable depends on it."""


class Act(NamedTuple):
    """One act of one seat for one microbatch.

    `send`: what `stage` made; forward its outputs to the next stage, backward the gradient of its inputs to the one
    before. `receive`: what `stage` needs; forward its inputs, backward the gradient of its outputs.
    """

    verb: Literal["compute", "send", "receive"]
    way: Way
    stage: int
    microbatch: int


class _Job(NamedTuple):
    begin: int
    end: int
    seat: int
    way: Way
    stage: int
    microbatch: int


@cache
def timetable(schedule: PipelineSchedule, seats: int, chunks: int, microbatches: int) -> tuple[tuple[Act, ...], ...]:
    """The acts of each of `seats` seats in turn; seat s holds the stages s, s + seats, ... of `chunks` x `seats`.

    All transfers stand in one common order, of which each seat sees its own. So none can wait for a transfer that
    waits for it, even where a sender goes on only when its peer receives.
    """
    last = seats * chunks - 1
    found = list[tuple[tuple[int, ...], int, Act]]()
    for job in _jobs(schedule, seats, chunks, microbatches):
        forward = job.way == "forward"
        # What is computed comes before what is sent at the same time, and is sent once it has ended.
        found.append(((job.end, 0, job.seat), job.seat, Act("compute", job.way, job.stage, job.microbatch)))
        other = job.stage + 1 if forward else job.stage - 1
        if 0 <= other <= last:
            key = (job.end, 1, int(forward), job.stage, job.microbatch)
            found.append((key, job.seat, Act("send", job.way, job.stage, job.microbatch)))
            found.append((key, other % seats, Act("receive", job.way, other, job.microbatch)))
    found.sort(key=lambda one: one[0])
    return tuple(tuple(act for _, owner, act in found if owner == seat) for seat in range(seats))


def bubble(schedule: PipelineSchedule, seats: int, chunks: int, microbatches: int) -> float:
    """The share of a step in which seats wait, if all stages took equally long and transfers no time."""
    jobs = _jobs(schedule, seats, chunks, microbatches)
    return 1 - sum(job.end - job.begin for job in jobs) / (seats * max(job.end for job in jobs))


def _jobs(schedule: PipelineSchedule, seats: int, chunks: int, microbatches: int) -> list[_Job]:
    """What is computed when, by seats of equal speed that each go forward as far ahead as they may, and else back.

    GPipe (Huang et al. 2018, arXiv:1811.06965): all forward, then all backward. 1F1B, as PipeDream-Flush (Narayanan
    et al. 2020, arXiv:2006.09503): only so many microbatches are forward before the first goes back as stages follow,
    and then one forward and one back in turn. Interleaved (Narayanan et al. 2021, arXiv:2104.04473): the same with
    several stages a seat, between which groups of as many microbatches as there are seats take turns.
    """
    last = seats * chunks - 1
    forward = [_turns(seat, seats, range(chunks), microbatches) for seat in range(seats)]
    backward = [_turns(seat, seats, range(chunks - 1, -1, -1), microbatches) for seat in range(seats)]
    ended = dict[tuple[Way, int, int], int]()
    free, made, back = [0] * seats, [0] * seats, [0] * seats
    jobs = list[_Job]()
    while len(jobs) < 2 * microbatches * (last + 1):
        able = list[tuple[int, int, Way]]()
        for seat in range(seats):
            whole = len(forward[seat])
            if made[seat] < min(whole, back[seat] + _in_flight(schedule, seat, seats, chunks, whole)):
                stage, number = forward[seat][made[seat]]
                ready = ended.get(("forward", stage - 1, number)) if stage else 0
                if ready is not None:
                    # Also where a way back could begin before: seats that go back twice in turn keep others waiting.
                    able.append((max(free[seat], ready), seat, "forward"))
                    continue
            if back[seat] < made[seat] and (schedule != "gpipe" or made[seat] == whole):
                stage, number = backward[seat][back[seat]]
                ready = ended.get(("forward", last, number) if stage == last else ("backward", stage + 1, number))
                if ready is not None:
                    able.append((max(free[seat], ready), seat, "backward"))
        begin, seat, way = min(able)
        stage, number = (forward[seat][made[seat]]) if way == "forward" else backward[seat][back[seat]]
        end = begin + (1 if way == "forward" else BACKWARD)
        jobs.append(_Job(begin, end, seat, way, stage, number))
        ended[way, stage, number] = free[seat] = end
        if way == "forward":
            made[seat] += 1
        else:
            back[seat] += 1
    return jobs


def _turns(seat: int, seats: int, chunks: range, microbatches: int) -> list[tuple[int, int]]:
    """(stage, microbatch) in the order in which a seat takes them."""
    groups = [range(start, min(start + seats, microbatches)) for start in range(0, microbatches, seats)]
    return [(chunk * seats + seat, number) for group in groups for chunk in chunks for number in group]


def _in_flight(schedule: PipelineSchedule, seat: int, seats: int, chunks: int, whole: int) -> int:
    """How many ways forward a seat may be ahead of its ways back."""
    after = seats - seat - 1
    if schedule == "gpipe":
        return whole
    return after + 1 if schedule == "1f1b" else 2 * after + (chunks - 1) * seats + 1
