"""Recording graphs before the clock starts: one batch of every shape, after which the learner is as it was."""

from __future__ import annotations

import itertools

import torch

from escala.execution.feed import width
from escala.execution.replay import Replays
from escala.run.loop import Course, Desk
from escala.terms.events import TrialMoved

_TRIED = 16


def capture_ahead(desk: Desk, course: Course) -> dict[str, str]:
    """Record what the first epoch's batches need: a full one, the last one where it is smaller, every width of rows.

    All seats record the same. Returns what to record of it. Raises `Unfit` where a step cannot be captured.
    """
    replays = desk.learner.replays
    assert replays is not None
    desk.say(TrialMoved(phase="capture", steps=course.total_steps))
    began = desk.clock()
    chosen = ""
    if replays.open:
        chosen = f", up to {_counted(replays.settle(_step_s(desk, course, replays)), 'step')} in one"
    for number, place in enumerate(_places(course), 1):
        for batch in itertools.islice(course.batches(0, place), 1):
            replays.prepare(batch)
            desk.mark(number)
    desk.synchronise()
    return {"capture": f"{desk.clock() - began:.1f} s, {_counted(replays.graphs, 'graph')}{chosen}"}


def captured_since(desk: Desk, before: int) -> dict[str, str]:
    """What was recorded when the clock was running, if anything was."""
    later = (desk.learner.replays.graphs if desk.learner.replays else 0) - before
    return {"captured while training": _counted(later, "graph")} if later else {}


def _step_s(desk: Desk, course: Course, replays: Replays) -> float:
    """Seconds of one replayed step on a full batch, the slowest seat's; the learner is then as it was."""
    state = desk.learner.snapshot()
    full = max(1, len(course.training) // course.batch)
    for tries in (1, min(_TRIED, full)):
        # Once to record, and once for the clock.
        batches = itertools.islice(course.batches(0), tries)
        desk.synchronise()
        began = desk.clock()
        replays.follow(batches, lambda _: None, 0)
        desk.synchronise()
        seconds = (desk.clock() - began) / tries
    desk.learner.restore(state)
    return max(row[0] for row in desk.group.gather([seconds]))


def _places(course: Course) -> list[int]:
    """The first batch of each shape in the first epoch, by its number."""
    rows = len(course.training)
    last = rows % course.batch
    if course.training.lengths is None:
        return [0, course.steps_per_epoch - 1] if last and course.steps_per_epoch > 1 else [0]
    lengths = course.training.lengths[torch.from_numpy(course.training.order(course.seed, 0, course.batch))]
    shapes = [(len(part), width(part)) for part in lengths.split(course.batch)]
    return sorted(shapes.index(shape) for shape in set(shapes))


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
