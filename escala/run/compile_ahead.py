"""Compiling before the clock starts: a step of every shape, after which the learner is put back as it was."""

from __future__ import annotations

import itertools

from escala.execution.compiled import breaks, end_tuning, graphs
from escala.run.loop import Course, Desk
from escala.terms.errors import Unfit
from escala.terms.events import TrialMoved


def compile_ahead(desk: Desk, course: Course) -> dict[str, str]:
    """One step on a full batch and one on the last of an epoch where that is smaller, so that both have their graphs.

    All seats make the same steps. Returns what to record of it. Batches of rows of many lengths share one graph,
    which torch makes when it has seen two widths; `compiled_since` tells of graphs made later. Raises `Unfit` where
    there was nothing to compile: the figures would be those of the plain network under another name.
    """
    desk.say(TrialMoved(phase="compile", steps=course.total_steps))
    state = desk.learner.snapshot()
    began = desk.clock()
    full = [0, 1] if course.training.lengths is not None and course.steps_per_epoch > 2 else [0]
    short = [course.steps_per_epoch - 1] if len(course.training) % course.batch and course.steps_per_epoch > 1 else []

    def step(first: int, number: int) -> None:
        for inputs, targets, count, size in itertools.islice(course.batches(0, first), 1):
            desk.learner.step(inputs, targets, count, size)
            desk.mark(number)

    # The network alone first: what surrounds it can be compiled in any case, and must not hide that it cannot.
    step(0, 1)
    if not graphs():
        raise Unfit(
            "torch.compile could compile no part of this network: its code cannot be followed, as where an "
            "nn.Sequential holds layers of batchnorm = ghost:N or sync, or dropout by row"
        )
    desk.learner.compile_around()
    for number, first in enumerate(full, 2):
        step(first, number)
    # A shorter batch comes once an epoch, and the minutes that tuning takes for it would never come back.
    end_tuning()
    for number, first in enumerate(short, 2 + len(full)):
        step(first, number)
    desk.synchronise()
    seconds = desk.clock() - began
    desk.learner.restore(state)
    return {"compile": f"{seconds:.1f} s, {_counted(graphs(), 'graph')}" + _broken()}


def compiled_since(before: int) -> dict[str, str]:
    """What was compiled when the clock was running, if anything was."""
    later = graphs() - before
    return {"compiled while training": _counted(later, "graph")} if later else {}


def _broken() -> str:
    return f", {_counted(breaks(), 'place')} left uncompiled" if breaks() else ""


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
