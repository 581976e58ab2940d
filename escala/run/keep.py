"""Keeps a training: what all seats hold becomes one checkpoint, and one checkpoint is given back to all seats.

A checkpoint knows nothing of the strategy that made it, but for what each seat has of its own: its random numbers and
running statistics. These return to the seats when there are as many of them as before.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import safetensors.torch
import torch
from msgspec import Struct
from torch import Tensor

from escala.execution.order import digest_of
from escala.execution.pack import numbers, pack, unpack
from escala.run.assignment import Assignment, EpochTally, Keeping
from escala.run.group import Group
from escala.run.loop import Course, Keeper, Place, Tally, Wish
from escala.run.own import draw_anew, own_state, take_own_state
from escala.store.checkpoint import MODEL, STATE, Meta, check_keys, open_checkpoint, save
from escala.strategies.base import Learner
from escala.terms.errors import EscalaError, Interrupted


class Progress(Struct, frozen=True):
    """What the loop had gathered over all seats; the curve of losses lies beside it, as an array."""

    place_sum: float
    place_count: int
    place_s: float
    epochs: tuple[EpochTally, ...]
    train_s: float
    validation_s: float | None
    samples: int
    steps_per_block: int


@dataclass(frozen=True)
class Kept:
    """What a checkpoint gave one seat. `settle_down` sets its random numbers, last thing before the first step.

    The sums over seats are counted as rank 0's own, so that adding up the seats still gives the whole.
    """

    tally: Tally
    place: Place
    steps_per_block: int | None
    settle_down: Callable[[], None]


@dataclass
class _Ledger:
    """What the last checkpoint held of the curve, summed over seats, so that only what is new needs an exchange."""

    losses: list[float]
    epochs: list[EpochTally]
    saved_at: float


def keeper(
    job: Assignment,
    keeping: Keeping,
    learner: Learner,
    course: Course,
    group: Group,
    steps_per_block: int,
    begun: Kept | None,
    asked: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
) -> Keeper:
    """The two hooks of the loop. `asked` tells whether this seat was asked to keep what it has and stop."""
    ledger = _Ledger([], [], clock())
    if begun is not None:
        whole = group.add_up(numbers(begun.tally.losses))
        ledger.losses, ledger.epochs = whole.tolist(), _whole(group, begun.tally.epochs)

    def wish() -> Wish:
        if asked():
            return Wish.STOP
        return Wish.SAVE if clock() - ledger.saved_at >= keeping.every_s else Wish.GO_ON

    def keep(tally: Tally, place: Place, granted: Wish) -> None:
        new = numbers(tally.losses[len(ledger.losses) :])
        ledger.losses += group.add_up(new).tolist()
        ledger.epochs += _whole(group, tally.epochs[len(ledger.epochs) :])
        rows = group.gather([place.loss_sum, float(place.count)])
        progress = Progress(
            place_sum=sum(row[0] for row in rows),
            place_count=int(max(row[1] for row in rows)),
            place_s=place.seconds,
            epochs=tuple(ledger.epochs),
            train_s=tally.train_s,
            validation_s=tally.validation_s,
            samples=tally.samples,
            steps_per_block=steps_per_block,
        )
        own = own_state(learner.core, job.trial.seats[job.rank].devices)
        learner.settle(course.own_share(group.partners), group.add_up)
        state = learner.state()
        take_own_state(learner.core, own, job.trial.seats[job.rank].devices)
        of_all = everybody(group, own)
        if group.rank == 0:
            arrays = {"losses": numbers(ledger.losses), "block seconds": numbers(tally.block_seconds), **of_all}
            _write(job, keeping, course, place, state, progress, arrays)
        # On the disk, or nobody goes on.
        group.gather([0.0])
        ledger.saved_at = clock()
        if granted is Wish.STOP:
            raise Interrupted(keyboard=False)

    return Keeper(wish, keep)


def give_back(job: Assignment, begin: str, learner: Learner, course: Course, group: Group) -> Kept:
    """Load a checkpoint into this seat's learner. Raises CKPT-KEYS, CKPT-ORDER and what `open_checkpoint` raises."""
    found = open_checkpoint(Path(begin))
    meta, where = found.meta, str(found.folder)
    model = _tensors(found.arrays(MODEL), where)
    arrays = _tensors(found.arrays(STATE), where)
    check_keys(learner.shapes(), {name: tuple(value.shape) for name, value in model.items()}, where)
    _check_order(meta, course, where)
    learner.load({"model": model, **unpack(meta.learner, arrays)})
    progress = msgspec.convert(meta.progress, Progress)
    tally = Tally(
        losses=arrays["losses"].tolist(),
        block_seconds=arrays["block seconds"].tolist(),
        epochs=list(progress.epochs),
        train_s=progress.train_s,
        validation_s=progress.validation_s,
        samples=progress.samples,
    )
    place = Place(meta.epoch, meta.done, progress.place_sum, progress.place_count, progress.place_s)
    if group.rank > 0:
        tally.losses = [0.0] * len(tally.losses)
        tally.epochs = [msgspec.structs.replace(epoch, loss_sum=0.0) for epoch in tally.epochs]
        place = replace(place, loss_sum=0.0)
    same = meta.seats == group.size and (meta.shares or meta.seats) == group.shares
    prefix = f"seat {group.rank}/"
    own = {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}
    devices = job.trial.seats[job.rank].devices

    def settle_down() -> None:
        if same:
            take_own_state(learner.core, own, devices)
        else:
            # Not the numbers that the first steps drew: those are behind us.
            draw_anew(job.trial.seed, job.rank, meta.step)

    alike = same and (meta.strategy, meta.ways) == (job.trial.strategy.name, job.trial.strategy.ways)
    return Kept(tally, place, progress.steps_per_block if alike else None, settle_down)


def _write(
    job: Assignment,
    keeping: Keeping,
    course: Course,
    place: Place,
    state: dict[str, Any],
    progress: Progress,
    arrays: dict[str, Tensor],
) -> None:
    trial = job.trial
    model, _ = pack(state["model"], "")
    tensors, plain = pack({name: value for name, value in state.items() if name != "model"}, "learner")
    meta = Meta(
        step=len(arrays["losses"]),
        epoch=place.epoch,
        done=place.done,
        order=digest_of(course.training.order(course.seed, place.epoch, course.batch)),
        seed=trial.seed,
        batch=trial.batch,
        optimizer=trial.train.optimizer,
        workload=trial.workload,
        data=keeping.data,
        precision=trial.execution.precision,
        strategy=trial.strategy.name,
        ways=trial.strategy.ways,
        seats=len(trial.seats),
        shares=len({seat.share for seat in trial.seats}),
        software={"torch": str(torch.__version__)},
        learner=plain,
        progress=msgspec.to_builtins(progress),
    )
    named = {name.removeprefix("/"): value for name, value in model.items()}
    save(
        Path(keeping.folder),
        meta,
        # One note only: several come in a random order, and the same weights should be the same bytes.
        safetensors.torch.save(named, metadata={"format": "pt"}),
        safetensors.torch.save({**tensors, **arrays}),
    )


def _whole(group: Group, epochs: list[EpochTally]) -> list[EpochTally]:
    """Epochs with the sums of all seats in place of this seat's. All seats call it with as many."""
    if not epochs:
        return []
    parts = [(epoch.loss_sum or 0.0, float(epoch.count)) for epoch in epochs]
    rows = group.gather([number for part in parts for number in part])
    return [
        msgspec.structs.replace(
            epoch,
            loss_sum=sum(row[2 * place] for row in rows),
            count=int(max(row[2 * place + 1] for row in rows)),
        )
        for place, epoch in enumerate(epochs)
    ]


def everybody(group: Group, own: dict[str, Tensor]) -> dict[str, Tensor]:
    """What every seat has of its own, by `seat RANK/NAME`. Bytes and floats pass through float64 unchanged.

    Seats that hold other layers have other names, so each tells first what it has.
    """
    layout = [(name, tuple(value.shape), str(value.dtype).removeprefix("torch.")) for name, value in own.items()]
    told = torch.frombuffer(bytearray(msgspec.json.encode(layout)), dtype=torch.uint8)
    found = dict[str, Tensor]()
    lines = _lines(group, torch.cat([value.flatten().double().cpu() for value in own.values()]))
    for rank, (text, line) in enumerate(zip(_lines(group, told.double()), lines, strict=True)):
        kinds = msgspec.json.decode(
            text.to(torch.uint8).numpy().tobytes(), type=list[tuple[str, tuple[int, ...], str]]
        )
        parts = line.split([math.prod(shape) for _, shape, _ in kinds])
        for (name, shape, kind), part in zip(kinds, parts, strict=True):
            found[f"seat {rank}/{name}"] = part.reshape(shape).to(getattr(torch, kind)).clone()
    return found


def _lines(group: Group, line: Tensor) -> list[Tensor]:
    """A line of float64 of every seat, by rank; they may be of unequal length."""
    sizes = [int(row[0]) for row in group.gather([float(len(line))])]
    table = torch.zeros(group.size, max(sizes), dtype=torch.float64)
    table[group.rank, : len(line)] = line
    group.add_up(table)
    return [row[:size] for row, size in zip(table, sizes, strict=True)]


def _tensors(data: bytes, where: str) -> dict[str, Tensor]:
    try:
        return safetensors.torch.load(data)
    except safetensors.SafetensorError as error:
        raise EscalaError("CKPT-DAMAGED", where, f"holds what is no safetensors: {error}") from None


def _check_order(meta: Meta, course: Course, where: str) -> None:
    order = digest_of(course.training.order(course.seed, meta.epoch, course.batch))
    if order != meta.order or meta.done > course.steps_per_epoch:
        raise EscalaError(
            "CKPT-ORDER",
            where,
            f"its rows came in another order in epoch {meta.epoch + 1}",
            expected=f"order {meta.order}, as made from seed {meta.seed} and batch {meta.batch}; this is {order}",
            next_step="give the settings and data that it was made with",
        )
