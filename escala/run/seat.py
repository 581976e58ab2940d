"""One seat from its assignment to its result, in whatever process it was given."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import torch

from escala.data.prepared import load
from escala.execution.allocator import keep_freed_memory
from escala.execution.binding import bound
from escala.execution.compiled import graphs
from escala.execution.feed import rows_of, sample_of
from escala.execution.feeds import feeder, unfinished
from escala.execution.precision import parameter_type
from escala.execution.synchronise import synchroniser
from escala.meters.memory import with_outside
from escala.meters.seats import SEAT_METERS
from escala.run.assignment import Assignment, SeatResult
from escala.run.capture_ahead import capture_ahead, captured_since
from escala.run.compile_ahead import compile_ahead, compiled_since
from escala.run.fingerprint import fingerprint, short_hash
from escala.run.group import Group
from escala.run.loop import Course, Desk, Tally, WarmUp, follow, warm_up
from escala.run.own import draw_anew
from escala.run.probing import without_dropout
from escala.strategies import strategy
from escala.strategies.seating import share_of
from escala.terms.errors import EscalaError
from escala.terms.events import TrialMoved
from escala.terms.record import Reading
from escala.terms.trial import Seat
from escala.workloads import workload
from escala.workloads.base import Workload


def sit(
    job: Assignment,
    group: Group,
    say: Callable[[TrialMoved], None],
    mark: Callable[[int], None],
    asked: Callable[[], bool] = lambda: False,
    edge: Callable[[], None] = lambda: None,
) -> SeatResult:
    """Build the learner, warm up, follow the course. The process group, if any, exists already.

    `edge` is called where a phase that counts begins or ends. Where the job is a training that is kept, `asked` tells
    whether it should make a checkpoint and stop, which raises `Interrupted`.
    """
    with bound(job.trial.seats, job.rank, pin=job.trial.execution.pin) as cores:
        result = _sit(job, group, say, mark, asked, edge)
    if cores is None:
        return result
    return msgspec.structs.replace(result, software=result.software | {"seats bound to cores": cores})


def _sit(
    job: Assignment,
    group: Group,
    say: Callable[[TrialMoved], None],
    mark: Callable[[int], None],
    asked: Callable[[], bool],
    edge: Callable[[], None],
) -> SeatResult:
    trial, seat = job.trial, job.trial.seats[job.rank]
    torch.set_num_threads(seat.threads)
    # Else torch judges rows by other code than it trains them with, which holds all weights of attention at once (of
    # 100 rows of 256 tokens with 8 heads 400 MiB more) and is slower on a processor.
    torch.backends.mha.set_fastpath_enabled(False)
    freed = "kept" if keep_freed_memory() else "left to the C library"
    meters = [SEAT_METERS[name](seat.devices) for name in job.meters if name in SEAT_METERS]
    for meter in meters:
        meter.start()
    work = workload(trial.workload, trial.options)
    torch.manual_seed(trial.seed)
    model = without_dropout(work.model()) if job.probing else work.model()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    initial = fingerprint(model)
    # The recipe with the seed of this very repeat.
    train = msgspec.structs.replace(trial.train, seed=trial.seed)
    course, notes = _course(job, work, seat)
    sample = partial(sample_of, course.training)
    decided, found = strategy(trial.strategy).decide(work, model, seat, trial.execution, sample)
    notes |= found
    learner = decided.build(work, model, seat, train, trial.execution)
    # Of a network that is cut this seat keeps its part alone.
    del model
    if learner.replays is not None:
        feed, complete = unfinished(course.feed, trial.execution, course.training)
        course = replace(course, feed=feed)
        learner.replays.finish_batches(complete)
    learner.plan_for(course.total_steps)
    learner.wait_at_most(job.timeout_s)
    _agree(group, initial, course)

    first_step = list[float]()
    wait = synchroniser([torch.device(name) for name in seat.devices])
    desk = Desk(learner, group, time.monotonic, wait, say, lambda _: _note_first(first_step))
    draw_anew(trial.seed, job.rank)
    say(TrialMoved(phase="warm-up", steps=course.total_steps))
    keeping = job.keeping
    if keeping is not None:
        # Only a training that is kept pays for loading what reads and writes checkpoints.
        from escala.run.keep import give_back, keeper
    if trial.execution.compile:
        notes |= compile_ahead(desk, course)
    if trial.execution.capture:
        notes |= capture_ahead(desk, course)
    begun = give_back(job, keeping.begin, learner, course, group) if keeping and keeping.begin else None
    if begun is not None and begun.steps_per_block is not None:
        warmth = WarmUp(begun.steps_per_block, settled=True)
        _note_first(first_step)
    else:
        warmth = warm_up(desk, course, job.block_s)
    draw_anew(trial.seed, job.rank)
    desk = Desk(learner, group, time.monotonic, wait, say, mark, edge=edge)
    if keeping is not None:
        kept = keeper(job, keeping, learner, course, group, warmth.steps_per_block, begun, asked)
        desk = replace(desk, keeper=kept)
    setup_s = time.monotonic() - job.launched
    made, captured = graphs(), learner.replays.graphs if learner.replays else 0
    shares = None
    if trial.role == "profile":
        # Loading the profiler takes time that only runs for it pay.
        from escala.run.profile import profiled

        tally = Tally()
        trace = Path(job.profile_trace) if job.profile_trace else None
        shares = profiled(desk, course, warmth.steps_per_block, trace)
    elif begun is None:
        tally = follow(desk, course, warmth.steps_per_block)
    else:
        begun.settle_down()
        tally = follow(desk, course, warmth.steps_per_block, begun.tally, begun.place)
    readings = tuple(reading for meter in meters for reading in meter.stop())
    readings = with_outside(readings, seat.devices[0], learner.outside_bytes)
    if "memory" in job.meters:
        held = learner.held_bytes().items()
        readings += tuple(Reading("state memory", where, float(size), "B", "counter") for where, size in held)
    flags = _flags(seat, freed) | notes | compiled_since(made) | captured_since(desk, captured)
    result = _result(tally, warmth, setup_s, first_step[0] - job.launched, parameters, readings, flags)
    return msgspec.structs.replace(result, skipped=learner.skipped, shares=shares)


def _note_first(times: list[float]) -> None:
    if not times:
        times.append(time.monotonic())


def _course(job: Assignment, work: Workload, seat: Seat) -> tuple[Course, dict[str, str]]:
    """The work, and what to record of how it is fed."""
    trial = job.trial
    device = torch.device(seat.devices[0])
    dtype = parameter_type(trial.execution.precision)
    splits = {
        name: rows_of(split, device, work, dtype, trial.execution)
        for name, split in load(Path(job.data)).items()
        if len(split.targets)
    }
    share = partial(share_of, seat.rows, trial.batch, unit=trial.execution.unit)
    feed, notes = feeder(trial.execution, splits["train"], trial.batch, share, trial.seed, seat.threads)
    course = Course(
        training=splits["train"],
        validation=splits.get("validation"),
        test=splits.get("test"),
        metrics=work.metrics,
        batch=trial.batch,
        share=share,
        seed=trial.seed,
        epochs=trial.train.epochs,
        steps=trial.train.steps,
        until=trial.train.until,
        feed=feed,
    )
    return course, notes


def _agree(group: Group, initial: int, course: Course) -> None:
    """Refuse to start where seats hold other weights, rows or orders. Raises `MODEL-INIT` or `DATA-ROWS`."""
    order = course.training.order(course.seed, 0, course.batch)
    rows = [len(course.training), len(course.validation or ()), len(course.test or ())]
    table = group.gather([initial, short_hash(order.tobytes()), *rows])
    for rank, row in enumerate(table):
        if row[0] != table[0][0]:
            raise EscalaError(
                "MODEL-INIT",
                f"rank {rank}",
                "its initial weights differ from those of rank 0",
                expected="a factory that draws only from torch's seeded generator",
            )
        if row[1:] != table[0][1:]:
            raise EscalaError(
                "DATA-ROWS",
                f"rank {rank}",
                f"it has {_counts(row)} rows in its splits, rank 0 has {_counts(table[0])}, or they differ in order",
                expected="the same data on every seat",
            )


def _counts(row: list[float]) -> str:
    return "/".join(str(int(number)) for number in row[2:])


def _result(
    tally: Tally,
    warmth: WarmUp,
    setup_s: float,
    first_step_s: float,
    parameters: int,
    readings: tuple[Reading, ...],
    flags: dict[str, str],
) -> SeatResult:
    return SeatResult(
        setup_s=setup_s,
        first_step_s=first_step_s,
        settled=warmth.settled,
        steps_per_block=warmth.steps_per_block,
        block_seconds=tuple(tally.block_seconds),
        losses=tuple(tally.losses),
        epochs=tuple(tally.epochs),
        steps=len(tally.losses),
        samples=tally.samples,
        train_s=tally.train_s,
        validation_s=tally.validation_s,
        test_s=tally.test_s,
        test_scores=tally.test_scores,
        test_rows=tally.test_rows,
        parameters=parameters,
        diverged=tally.diverged,
        readings=readings,
        spans=tuple(tally.spans),
        software=flags,
    )


def _flags(seat: Seat, freed: str) -> dict[str, str]:
    """The settings of this process that bear on speed or arithmetic."""
    flags = {"threads": str(torch.get_num_threads()), "freed host memory": freed}
    if torch.distributed.is_initialized():
        flags["backend"] = str(torch.distributed.get_backend())
    if seat.devices[0].startswith("cuda"):
        flags["tf32 in products"] = str(torch.backends.cuda.matmul.allow_tf32)
        flags["tf32 in convolutions"] = str(torch.backends.cudnn.allow_tf32)
        flags["cudnn.benchmark"] = str(torch.backends.cudnn.benchmark)
    return flags
