"""Recording graphs before the clock starts: one batch of every shape, after which the learner is as it was."""

from __future__ import annotations

import itertools

import torch

from escala.execution.feed import width
from escala.run.loop import Course, Desk
from escala.terms.events import TrialMoved


def capture_ahead(desk: Desk, course: Course) -> dict[str, str]:
    """Record what the first epoch's batches need: a full one, the last one where it is smaller, every width of rows.

    All seats record the same. Returns what to record of it. Raises `Unfit` where a step cannot be captured.
    """
    replays = desk.learner.replays
    assert replays is not None
    desk.say(TrialMoved(phase="capture", steps=course.total_steps))
    began = desk.clock()
    for number, place in enumerate(_places(course), 1):
        for batch in itertools.islice(course.batches(0, place), 1):
            replays.prepare(batch)
            desk.mark(number)
    desk.synchronise()
    return {"capture": f"{desk.clock() - began:.1f} s, {_counted(replays.graphs)}"}


def captured_since(desk: Desk, before: int) -> dict[str, str]:
    """What was recorded when the clock was running, if anything was."""
    later = (desk.learner.replays.graphs if desk.learner.replays else 0) - before
    return {"captured while training": _counted(later)} if later else {}


def _places(course: Course) -> list[int]:
    """The first batch of each shape in the first epoch, by its number."""
    rows = len(course.training)
    last = rows % course.batch
    if course.training.lengths is None:
        return [0, course.steps_per_epoch - 1] if last and course.steps_per_epoch > 1 else [0]
    lengths = course.training.lengths[torch.from_numpy(course.training.order(course.seed, 0, course.batch))]
    shapes = [(len(part), width(part)) for part in lengths.split(course.batch)]
    return sorted(shapes.index(shape) for shape in set(shapes))


def _counted(graphs: int) -> str:
    return f"{graphs} graph" + ("" if graphs == 1 else "s")
