"""The only clock. Trains and evaluates one seat's learner, timing blocks of steps between synchronisations.

Every timed window begins and ends with the device idle, so a window holds the work that was queued in it and no
other. Within a window nothing waits for the device: losses stay on it until the edge.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import torch
from torch import Tensor

from escala.execution.feed import Batch, Rows, evaluation_batches, training_batches
from escala.execution.feeds import Feeder
from escala.execution.order import digest_of
from escala.run.assignment import Divergence, EpochTally, Span
from escala.run.group import Group
from escala.strategies.base import Learner
from escala.terms.events import TrialMoved
from escala.terms.record import reaches
from escala.workloads.base import Metric

WARM_BLOCKS = 3
WARM_GAIN = 0.05
WARM_LIMIT_S = 5.0


class Wish(IntEnum):
    """What a seat wants at the edge of a block; the greatest wish of all seats is granted."""

    GO_ON = 0
    SAVE = 1
    STOP = 2


@dataclass(frozen=True)
class Place:
    """How far a training is: `done` steps of `epoch` (from 0), and what that epoch has gathered so far.

    `loss_sum` is this seat's part, `count` the global one, as in `EpochTally`.
    """

    epoch: int = 0
    done: int = 0
    loss_sum: float = 0.0
    count: int = 0
    seconds: float = 0.0


START = Place()


@dataclass(frozen=True)
class Keeper:
    """Makes checkpoints. `wish` is asked at every edge; `save` is called on all seats together, outside the clock.

    It is called at the end of each epoch's steps and where a seat wished so; for `Wish.STOP` it does not return.
    """

    wish: Callable[[], Wish]
    save: Callable[[Tally, Place, Wish], None]


@dataclass(frozen=True)
class Desk:
    """What the loop works with: the learner, its peers, the clock, the device's hook and two ways to be seen.

    `mark` is called with the number of each step that has been queued, or of the last of several; `say` at edges of
    blocks, a few times a second; `edge` where a phase begins or ends, so that meters can be read there.
    """

    learner: Learner
    group: Group
    clock: Callable[[], float]
    synchronise: Callable[[], None]
    say: Callable[[TrialMoved], None]
    mark: Callable[[int], None]
    keeper: Keeper | None = None
    edge: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Course:
    """The work: rows by split, batch, this seat's share, budget. `epochs` None: exactly `steps` steps, no more.

    With `until`, the score to reach, `epochs` is the most that is tried.
    """

    training: Rows
    validation: Rows | None
    test: Rows | None
    metrics: Sequence[Metric]
    batch: int
    share: Callable[[int], slice]
    seed: int
    epochs: int | None
    steps: int | None
    until: float | None = None
    feed: Feeder = training_batches

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self.training) // self.batch)

    @property
    def total_steps(self) -> int:
        return self.steps if self.steps is not None else (self.epochs or 0) * self.steps_per_epoch

    def own_share(self, partners: int) -> float:
        """This seat's part of the rows, which it has in common with so many `partners`, itself included."""
        own = self.share(self.batch)
        rows: int = own.stop - own.start
        return rows / self.batch / partners

    def reached(self, score: float | None) -> bool:
        """Whether this score in validation is the one that training was to go on until."""
        return self.until is not None and reaches(score, self.until, self.metrics[0].better)

    def batches(self, epoch: int, first: int = 0) -> Iterator[Batch]:
        order = self.training.order(self.seed, epoch, self.batch)
        return self.feed(self.training, order, self.batch, self.share, first=first)


@dataclass(frozen=True)
class WarmUp:
    """How many steps make a block, and whether block times had settled when the limit came."""

    steps_per_block: int
    settled: bool


@dataclass
class Tally:
    """What has been measured so far; the only thing here that changes."""

    losses: list[float] = field(default_factory=list)
    block_seconds: list[float] = field(default_factory=list)
    epochs: list[EpochTally] = field(default_factory=list)
    train_s: float = 0.0
    validation_s: float | None = None
    test_s: float | None = None
    test_scores: tuple[float, ...] = ()
    test_rows: int = 0
    samples: int = 0
    diverged: Divergence | None = None
    spans: list[Span] = field(default_factory=list)


def warm_up(desk: Desk, course: Course, block_s: float) -> WarmUp:
    """Run blocks until their times settle, then put the learner back as it was.

    Settled: the last three blocks of at least `block_s` seconds brought no time more than 5 % below the best before
    them; blocks that merely differ are noise, which more warm-up does not cure. All seats see the same gathered
    times, so all of them take the same decisions.
    """
    state = desk.learner.snapshot()
    batches = itertools.chain.from_iterable(course.batches(epoch) for epoch in itertools.count())
    began = desk.clock()
    steps, times = 1, list[float]()
    while True:
        seconds, _, _ = timed_block(desk, itertools.islice(batches, steps))
        slowest = max(row[0] for row in desk.group.gather([seconds]))
        if slowest < block_s and steps < course.steps_per_epoch:
            # At most eightfold: the first step may hold start-up work that says little about the next ones.
            steps = min(course.steps_per_epoch, 8 * steps, max(steps + 1, math.ceil(1.1 * steps * block_s / slowest)))
            times.clear()
        else:
            times.append(slowest)
        earlier, recent = times[:-WARM_BLOCKS], times[-WARM_BLOCKS:]
        settled = bool(earlier) and min(recent) >= (1 - WARM_GAIN) * min(earlier)
        late = max(row[0] for row in desk.group.gather([desk.clock() - began])) > WARM_LIMIT_S
        if settled or (late and times):
            desk.learner.restore(state)
            return WarmUp(steps, settled)


def follow(
    desk: Desk, course: Course, steps_per_block: int, tally: Tally | None = None, place: Place = START
) -> Tally:
    """The whole budget, or what is left of it from `place` on, of which `tally` tells what came before.

    Stops early, on all seats together, when a loss is not finite or the score to reach is reached.
    """
    tally = tally or Tally()
    orders = {epoch.order for epoch in tally.epochs}
    epoch = place.epoch
    while len(tally.losses) < course.total_steps or place.done:
        order = digest_of(course.training.order(course.seed, epoch, course.batch))
        if order in orders and len(course.training) > 2:
            raise RuntimeError(f"epoch {epoch} would see its rows in the order of an earlier epoch")
        orders.add(order)
        steps = min(course.steps_per_epoch, course.total_steps - len(tally.losses) + place.done)
        seconds, loss_sum, count = _train(desk, course, tally, place, steps, steps_per_block)
        tally.train_s += seconds
        validation_s, score = None, None
        if course.validation is not None and course.steps is None and tally.diverged is None:
            desk.say(_moved(course, tally, "validation", epoch))
            desk.edge()
            began = desk.clock()
            validation_s, (score, *_), _ = evaluate(desk, course.validation, course)
            tally.spans.append(Span("validation", epoch + 1, began, desk.clock()))
            tally.validation_s = (tally.validation_s or 0.0) + validation_s
        tally.epochs.append(EpochTally(seconds, order, loss_sum, count, validation_s, score))
        if tally.diverged is not None:
            return tally
        epoch += 1
        place = Place(epoch)
        # Scores are made of what all seats gathered, so all of them come to the same answer.
        if course.reached(score):
            break
    if course.test is not None and course.steps is None:
        desk.say(_moved(course, tally, "test", epoch - 1))
        desk.edge()
        began = desk.clock()
        tally.test_s, tally.test_scores, tally.test_rows = evaluate(desk, course.test, course)
        tally.spans.append(Span("test", epoch, began, desk.clock()))
    desk.edge()
    return tally


def evaluate(desk: Desk, rows: Rows, course: Course) -> tuple[float, tuple[float, ...], int]:
    """Seconds, each metric, and number of rows judged, over all seats. Every row is judged exactly once."""
    desk.group.gather([0.0])
    began = desk.clock()
    learner, group = desk.learner, desk.group
    learner.settle(course.own_share(group.partners), group.add_up)
    sums = list[Tensor]()
    judged = counted = 0
    for inputs, targets, count in evaluation_batches(rows, group.share, group.shares, together=learner.together):
        outputs = learner.predict(inputs)
        if outputs is None or not group.tells or not len(targets):
            continue
        sums.append(rows.score(outputs, targets))
        judged += len(targets)
        counted += count
    desk.synchronise()
    # One number a chunk and metric, added up in float64 so that the order of chunks and seats hardly matters.
    own = torch.stack(sums).double().reshape(len(sums), -1).sum(0).tolist() if sums else [0.0] * len(course.metrics)
    everybody = desk.group.gather([*own, float(judged), float(counted)])
    seconds = desk.clock() - began
    *totals, judged_by_all, counted_by_all = (sum(column) for column in zip(*everybody, strict=True))
    if judged_by_all != len(rows):
        raise RuntimeError(f"{judged_by_all:.0f} rows were judged, but the split has {len(rows)}")
    slowest = max(row[0] for row in desk.group.gather([seconds]))
    over = {"rows": judged_by_all, "count": counted_by_all}
    pairs = zip(course.metrics, totals, strict=True)
    scores = tuple(metric.of_mean(total / max(1, over[metric.over])) for metric, total in pairs)
    return slowest, scores, len(rows)


def _train(
    desk: Desk, course: Course, tally: Tally, place: Place, steps: int, steps_per_block: int
) -> tuple[float, float, int]:
    """The rest of one epoch, or what the budget leaves of it, from `place` on.

    Seconds, this seat's sum of losses, and the global count, all of the whole epoch.
    """
    epoch, done, loss_sum, count = place.epoch, place.done, place.loss_sum, place.count
    batches = course.batches(epoch, done)
    desk.group.gather([0.0])
    desk.edge()
    began = resumed = desk.clock()
    began -= place.seconds
    while done < steps:
        size = min(steps_per_block, steps - done)
        first = len(tally.losses)
        seconds, losses, counts = timed_block(desk, itertools.islice(batches, size), first)
        own = _told(losses, len(counts)) if desk.group.tells else [0.0] * len(counts)
        bad = next((place for place, value in enumerate(own) if not math.isfinite(value)), -1)
        # A seat with no row in a batch has a count of 0 and a loss of 0.
        parts = [value / max(1, number) for value, number in zip(own, counts, strict=True)]
        wish = desk.keeper.wish() if desk.keeper else Wish.GO_ON
        edge = desk.group.gather([seconds, float(bad), float(len(own)), parts[-1], float(wish)])
        _check_in_step(edge)
        slowest = max(row[0] for row in edge)
        tally.diverged = _first_bad(edge, first)
        kept = size if tally.diverged is None else tally.diverged.step - first + 1
        tally.losses += parts[:kept]
        loss_sum += sum(own[:kept])
        count += sum(counts)
        done += size
        if tally.diverged is not None:
            break
        if size == steps_per_block:
            tally.block_seconds.append(slowest)
        tally.samples += min(done * course.batch, len(course.training)) - (done - size) * course.batch
        pace = size * course.batch / slowest if slowest > 0 else None
        desk.say(_moved(course, tally, "train", epoch, pace, sum(row[3] for row in edge)))
        granted = Wish(int(max(row[4] for row in edge)))
        if desk.keeper and (granted is not Wish.GO_ON or done == steps):
            paused = desk.clock()
            tally.spans.append(Span("train", epoch + 1, resumed, paused))
            desk.edge()
            desk.say(_moved(course, tally, "checkpoint", epoch))
            desk.keeper.save(tally, Place(epoch, done, loss_sum, count, paused - began), granted)
            desk.edge()
            resumed = desk.clock()
            began += resumed - paused
    ended = desk.clock()
    # What is kept ended with a checkpoint, and its last span there.
    if not desk.keeper or tally.diverged is not None:
        tally.spans.append(Span("train", epoch + 1, resumed, ended))
    seconds = ended - began
    return max(row[0] for row in desk.group.gather([seconds])), loss_sum, count


def _told(losses: Sequence[Tensor | None], steps: int) -> list[float]:
    known = [loss for loss in losses if loss is not None]
    found: list[float] = torch.hstack(known).double().tolist() if known else []
    if len(found) < steps:
        raise RuntimeError("a seat that is to tell the loss does not know it")
    return found


def timed_block(
    desk: Desk, batches: Iterator[Batch], first: int = 0
) -> tuple[float, Sequence[Tensor | None], Sequence[int]]:
    """Steps on the batches between two edges of the clock: seconds, and losses and counts as from `Learner.steps`."""
    began = desk.clock()
    losses, counts = desk.learner.steps(batches, desk.mark, first)
    desk.synchronise()
    return desk.clock() - began, losses, counts


def _check_in_step(edge: Sequence[Sequence[float]]) -> None:
    counts = [int(row[2]) for row in edge]
    if len(set(counts)) > 1:
        told = ", ".join(f"rank {rank} made {count}" for rank, count in enumerate(counts))
        raise RuntimeError(f"seats are out of step: in one block {told} steps")


def _first_bad(edge: Sequence[Sequence[float]], first: int) -> Divergence | None:
    bad = [(int(row[1]), rank) for rank, row in enumerate(edge) if row[1] >= 0]
    if not bad:
        return None
    step, rank = min(bad)
    return Divergence(first + step, rank)


def _moved(
    course: Course,
    tally: Tally,
    phase: str,
    epoch: int,
    samples_per_second: float | None = None,
    loss: float | None = None,
) -> TrialMoved:
    return TrialMoved(
        phase=phase,
        epoch=epoch + 1,
        epochs=course.epochs or 0,
        step=len(tally.losses),
        steps=course.total_steps,
        samples_per_second=samples_per_second,
        loss=loss,
    )
