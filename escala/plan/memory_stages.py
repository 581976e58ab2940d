"""How much memory each device of a network that is cut will hold: parts of it, and rows on their way."""

from __future__ import annotations

from collections.abc import Sequence

from escala.plan.estimate import EXCHANGED, Estimate
from escala.plan.traces import PartTrace, Trace
from escala.strategies import strategy
from escala.strategies.balance import balanced, spans
from escala.strategies.layers import Layers
from escala.strategies.pipeline import Pipeline
from escala.strategies.timetable import Act, timetable
from escala.terms.trial import Seat, Trial


def staged(trial: Trial, seat: Seat, trace: Trace) -> tuple[Estimate, ...]:
    """What one seat holds on each of its devices, in their order; empty where the strategy cuts nothing.

    Where nobody says where to cut, stages are taken to be balanced by operations; the run measures seconds.
    """
    chosen = strategy(trial.strategy)
    if not isinstance(chosen, Pipeline | Layers) or len(trace.along) < chosen.stages:
        return ()
    given = chosen.options.split
    stages = spans(given if given is not None else balanced([part.operations for part in trace.along], chosen.stages))
    if isinstance(chosen, Layers):
        there_and_back = (Act("compute", "forward", 0, 0), Act("compute", "backward", 0, 0))
        return tuple(_holding(trace, [one], there_and_back, 1) for one in stages)
    each = chosen.ways // chosen.shares
    place = seat.rank % each
    many = len(chosen.cut(trial.execution)(seat.batch))
    acts = timetable(chosen.schedule, each, chosen.chunks, many)[place]
    own = [stages[place + each * chunk] for chunk in range(chosen.chunks)]
    return (_holding(trace, own, acts, each, replicated=chosen.shares > 1),)


def _holding(
    trace: Trace, own: Sequence[range], acts: Sequence[Act], each: int, *, replicated: bool = False
) -> Estimate:
    """A device that holds these stages, of which stage s is the one at s // `each`."""
    parts = [[trace.along[number] for number in one] for one in own]
    weights = sum(part.parameters for stage in parts for part in stage)
    share = weights / max(1, trace.parameters)
    gradients, state, stepping = (
        round(share * whole) for whole in (trace.gradients, trace.optimizer, trace.stepping)
    )
    buffers = round(share * trace.buffers)
    passing = _most_on_the_way([(_saved(stage), _peak(stage)) for stage in parts], acts, each)
    last = len(trace.along) - 1 in (number for one in own for number in one)
    after = max(stepping, min(EXCHANGED, gradients) if replicated else 0, trace.judging if last else 0)
    kept = weights + buffers
    peak = weights + buffers + state + kept + gradients + max(passing, after)
    return Estimate(peak, weights, buffers, gradients, state, passing, stepping, kept)


def _saved(stage: Sequence[PartTrace]) -> int:
    return stage[0].given + sum(part.saved for part in stage)


def _peak(stage: Sequence[PartTrace]) -> int:
    """The most of a pass there and back: a part's own peak comes beside what those before it have saved."""
    found, before = 0, stage[0].given
    for part in stage:
        found = max(found, before + part.peak)
        before += part.saved
    return max(found, before)


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
