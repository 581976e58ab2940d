"""How much memory each device of a network that is cut will hold: parts of it, and rows on their way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec.structs import replace

from escala.plan.estimate import EXCHANGED, Estimate
from escala.plan.traces import PartTrace, Trace
from escala.strategies import strategy
from escala.strategies.balance import balanced, spans
from escala.strategies.layers import Layers
from escala.strategies.pipeline import Pipeline
from escala.strategies.timetable import Act, timetable
from escala.terms.trial import Seat, Trial

_THERE_AND_BACK = (Act("compute", "forward", 0, 0), Act("compute", "backward", 0, 0))


class _Weights(NamedTuple):
    """Bytes that a device has of its own; that it gets from another one for each pass; that it lends so."""

    own: int
    borrowed: int = 0
    lent: int = 0


def staged(trial: Trial, seat: Seat, trace: Trace) -> tuple[Estimate, ...]:
    """What one seat holds on each of its devices, in their order; empty where the strategy cuts nothing.

    Where nobody says where to cut, stages are taken to be balanced by operations. The run measures seconds, for which
    every part goes there and back by itself on the first device.
    """
    chosen = strategy(trial.strategy)
    if not isinstance(chosen, Pipeline | Layers) or len(trace.along) < chosen.stages:
        return ()
    given = chosen.options.split
    stages = spans(given if given is not None else balanced([part.operations for part in trace.along], chosen.stages))
    if isinstance(chosen, Layers):
        found = _layers(seat, trace, stages)
    else:
        found = _pipeline(chosen, trial, seat, trace, stages)
    if given is None and not chosen.simulate and seat.rank == 0:
        first, *others = found
        return (replace(first, peak=max(first.peak, trace.fed + max(part.alone for part in trace.along))), *others)
    return found


def _layers(seat: Seat, trace: Trace, stages: Sequence[range]) -> tuple[Estimate, ...]:
    fed = _fed(seat, trace)
    acts = _THERE_AND_BACK * (-(-seat.batch // trace.key.rows))
    return tuple(
        _holding(trace, [one], acts, 1, _lent(trace, stages, number), fed=0 if number else fed)
        for number, one in enumerate(stages)
    )


def _pipeline(
    chosen: Pipeline, trial: Trial, seat: Seat, trace: Trace, stages: Sequence[range]
) -> tuple[Estimate, ...]:
    seats = chosen.ways // chosen.shares
    place = seat.rank % seats
    many = len(chosen.cut(trial.execution)(seat.batch))
    acts = timetable(chosen.schedule, seats, chosen.chunks, many)[place]
    own = [stages[place + seats * chunk] for chunk in range(chosen.chunks)]
    # All seats of a pipeline are given all rows.
    fed = _fed(seat, trace)
    return (_holding(trace, own, acts, seats, _held(trace, own), fed=fed, replicated=chosen.shares > 1),)


def _fed(seat: Seat, trace: Trace) -> int:
    return round(trace.fed * seat.batch / trace.key.rows)


def _holding(
    trace: Trace,
    own: Sequence[range],
    acts: Sequence[Act],
    each: int,
    weights: _Weights,
    *,
    fed: int,
    replicated: bool = False,
) -> Estimate:
    """A device that holds these stages, of which stage s is the one at s // `each`."""
    parts = [[trace.along[number] for number in one] for one in own]
    share = weights.own / max(1, trace.parameters)
    gradients, state, stepping = (
        round(share * whole) for whole in (trace.gradients, trace.optimizer, trace.stepping)
    )
    buffers = round(share * trace.buffers)
    judging = max(map(_judging, parts)) + trace.along[0].taken * (own[0].start > 0 and each > 1)
    after = gradients + max(stepping, min(EXCHANGED, gradients) if replicated else 0, judging)
    if sum(act.verb == "compute" for act in acts) == len(_THERE_AND_BACK):
        # Gradients come as the one pass goes back.
        passing = _peak_with_gradients(parts[0], trace.gradients / max(1, trace.parameters))
        working = passing = passing + fed + 2 * weights.borrowed + weights.lent
    else:
        passing = _most_on_the_way([(_saved(stage), _peak(stage)) for stage in parts], acts, each) + fed
        working = gradients + passing
    kept = weights.own + buffers
    peak = weights.own + buffers + state + kept + max(working, after)
    multiplies = any(part.multiplies for one in parts for part in one)
    return Estimate(peak, weights.own, buffers, gradients, state, passing, stepping, kept, multiplies=multiplies)


def _held(trace: Trace, own: Sequence[range]) -> _Weights:
    """Of all these parts, those that several of them have counted once."""
    numbers = {number for one in own for number in one}
    again = sum(size for number in numbers for first, size in trace.along[number].tied if first in numbers)
    return _Weights(sum(trace.along[number].parameters for number in numbers) - again)


def _lent(trace: Trace, stages: Sequence[range], number: int) -> _Weights:
    """In one process the first stage that has a weight keeps it; it comes to the others for a pass, as a copy."""
    tied = [(first, size, place) for place, part in enumerate(trace.along) for first, size in part.tied]
    stage = stages[number]
    borrowed = sum(size for first, size, place in tied if place in stage and first not in stage)
    lent = sum(size for first, size, place in tied if first in stage and place not in stage)
    return _Weights(_held(trace, [stage]).own - borrowed, borrowed, lent)


def _saved(stage: Sequence[PartTrace]) -> int:
    return stage[0].given + sum(part.saved for part in stage)


def _peak(stage: Sequence[PartTrace]) -> int:
    """The most of a pass there and back: a part's own peak comes beside what those before it have saved."""
    found, before = 0, stage[0].given
    for part in stage:
        found = max(found, before + part.peak)
        before += part.saved
    return max(found, before)


def _peak_with_gradients(stage: Sequence[PartTrace], each: float) -> int:
    """As `_peak`, with the gradients of parts that are back by then, so many bytes for each of weights."""
    found, before = 0, stage[0].given
    back = sum(part.parameters for part in stage)
    for part in stage:
        back -= part.parameters
        found = max(found, before + part.with_gradients + round(each * back))
        before += part.saved
    return found


def _judging(stage: Sequence[PartTrace]) -> int:
    """The most while rows are judged: what the stage takes stays until its last part is through."""
    beside = max(part.judging + (part.taken if place else 0) for place, part in enumerate(stage))
    return stage[0].taken + beside


def _most_on_the_way(stages: Sequence[tuple[int, int]], acts: Sequence[Act], each: int) -> int:
    """The most that is there at once of (saved, peak) of each stage, by who is forward and not yet back."""
    now = most = 0
    for act in acts:
        if act.verb != "compute":
            continue
        saved, peak = stages[act.stage // each]
        if act.way == "forward":
            now += saved
            most = max(most, now)
        else:
            most = max(most, now - saved + peak)
            now -= saved
    return most
