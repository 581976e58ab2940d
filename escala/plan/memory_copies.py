"""How much memory devices hold that have copies of one network, of which the first one has all the rest."""

from __future__ import annotations

from escala.plan.estimate import Estimate
from escala.plan.traces import Trace

_BUCKET = 10 * 2**20
"""Bytes of gradients that `torch.nn.parallel.comm.reduce_add_coalesced` sends at once."""


def copied(trace: Trace, devices: int, *, several: bool = False) -> tuple[Estimate, ...]:
    """By device, the first one first; `several` passes make a step."""
    return (_first(trace, several=several), *[_other(trace)] * (devices - 1))


def _first(trace: Trace, *, several: bool) -> Estimate:
    """It is fed with all rows, has the outputs of all gathered for the loss, and steps."""
    copy, _ = trace.along
    fed = trace.key.copies * trace.fed
    # What comes back is added up into new gradients while this device's own are still there.
    summed = 2 * trace.gradients + _bucket(trace)
    passing = fed + max(copy.with_gradients, summed) + (trace.gradients if several else 0)
    judging = trace.key.copies * copy.taken + copy.judging
    after = trace.gradients + max(trace.stepping, judging)
    kept = trace.parameters + trace.buffers
    peak = 2 * kept + trace.optimizer + max(passing, after)
    return Estimate(
        peak,
        trace.parameters,
        trace.buffers,
        trace.gradients,
        trace.optimizer,
        passing,
        trace.stepping,
        kept,
    )


def _other(trace: Trace) -> Estimate:
    """A copy lives for a pass alone, and for that of rows that are judged."""
    _, copy = trace.along
    back = max(copy.with_gradients, trace.gradients + _bucket(trace))
    passing = max(copy.given + back, copy.taken + copy.judging)
    peak = trace.parameters + trace.buffers + passing
    return Estimate(peak, trace.parameters, trace.buffers, trace.gradients, activations=passing)


def _bucket(trace: Trace) -> int:
    return min(trace.gradients, _BUCKET)
