"""Where the time of a step goes on one seat: a few steps under torch's profiler, in a run of their own.

The profiler slows the host, so these runs give shares and no times: neither speed nor energy is taken from them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

from escala.run.intervals import Stretch, joined, length, within, without
from escala.run.loop import Course, Desk, timed_block
from escala.terms.record import SeatShares

STEPS = 20
_BLOCKS = 4
"""Blocks of the clock that are enough to look at: of long steps the profiler's own work would take minutes."""
_WINDOW = "escala: profiled steps"
_EXCHANGES = ("nccl", "gloo:")
_COMPILED = ("CompiledFunction", "Torch-Compiled Region", "## Call CompiledFxGraph")


def profiled(desk: Desk, course: Course, steps_per_block: int, trace: Path | None) -> SeatShares:
    """Shares of this seat's time over the first steps of an epoch, between two synchronisations.

    As many steps as four blocks of the clock have, 20 at most, as far as there are so many. With
    `trace`, a file that ends in `.json.gz`, the profiler's events are kept there in Chrome's format. Raises OSError
    where it cannot be written.
    """
    device = next(desk.learner.core.parameters()).device
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device.type == "cuda" else [])]
    steps = min(looked_at(steps_per_block), course.steps_per_epoch, course.total_steps)
    batches = itertools.islice(course.batches(0), steps)
    desk.synchronise()
    desk.group.gather([0.0])
    with profile(activities=activities) as seen, record_function(_WINDOW):
        timed_block(desk, batches)
    if trace is not None:
        seen.export_chrome_trace(str(trace))
    return shares_of(seen.events() or (), desk.group.rank, str(device), steps)


def looked_at(steps_per_block: int) -> int:
    """How many steps are looked at where there are enough."""
    return min(STEPS, _BLOCKS * steps_per_block)


def shares_of(events: Iterable[Any], rank: int, where: str, steps: int) -> SeatShares:
    """The shares that the profiler's events tell of the seat on device `where`.

    Work on an accelerator is what its kernels and copies take; on a CPU what operators take. Raises RuntimeError
    where the window is not among the events.
    """
    events = list(events)
    window = next((_time(one) for one in events if one.name == _WINDOW and _on_host(one)), None)
    if window is None:
        raise RuntimeError("the profiler lost the window that was to be profiled")
    if where.startswith("cpu"):
        exchange = [_time(one) for one in events if one.name.startswith(_EXCHANGES)]
        work = [_time(one) for one in events if one.name.startswith(("aten::", *_COMPILED))]
    else:
        on_device = [one for one in events if not _on_host(one) and not one.is_user_annotation]
        exchange = [_time(one) for one in on_device if one.name.startswith(_EXCHANGES)]
        work = [_time(one) for one in on_device if not one.name.startswith(_EXCHANGES)]
    working, exchanging = within(work, window), within(exchange, window)
    whole = window[1] - window[0]
    busy = length(working)
    alone = length(without(exchanging, working))
    return SeatShares(
        rank=rank,
        where=where,
        steps=steps,
        work=busy / whole,
        exchange=alone / whole,
        idle=1 - length(joined([*working, *exchanging])) / whole,
        hidden=(length(exchanging) - alone) / whole,
    )


def _on_host(event: Any) -> bool:
    return bool(event.device_type == DeviceType.CPU)


def _time(event: Any) -> Stretch:
    return event.time_range.start, event.time_range.end
