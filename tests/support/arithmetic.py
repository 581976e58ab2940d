"""One seat's way through the cases of the same-arithmetic test.

`python arithmetic.py USE RANK FOLDER STATE`, USE being a `StrategyUse` as JSON: one start serves all cases, since
importing torch takes longer than any of them. Last, the seats load the checkpoint STATE together and judge the same
rows; where there is no such file yet, the learner of the first case is saved there first.
"""

from __future__ import annotations

import itertools
import sys
import time
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import torch
from arithmetic_cases import CASES, Case, compared, host
from fake_graph import FakeRecorder

from escala.data.base import Split
from escala.execution.feed import rows_of, sample_of
from escala.execution.feeds import feeder, unfinished
from escala.execution.order import order_of
from escala.execution.precision import parameter_type
from escala.execution.synchronise import synchroniser
from escala.run.group import Group, leave, meet
from escala.run.loop import Course, Desk, evaluate
from escala.strategies import STRATEGIES, strategy
from escala.strategies import learner as learners
from escala.strategies.base import Learner
from escala.strategies.seating import share_of
from escala.terms.experiment import TrainSpec
from escala.terms.trial import StrategyUse
from escala.workloads import workload


def patterns(rows: int) -> Split:
    """Ten noisy patterns to tell apart. Random labels would do nothing but blow up differences of rounding."""
    drawn = np.random.default_rng(7)
    targets = drawn.integers(0, 10, rows, dtype=np.int64)
    ideal = drawn.integers(0, 120, (10, 28, 28))
    return Split((ideal[targets] + drawn.integers(0, 136, (rows, 28, 28))).astype(np.uint8), targets)


def follow(case: Case, use: StrategyUse, group: Group) -> tuple[Learner, dict[str, np.ndarray]]:
    """The learner at the end; this seat's parts of the losses, and the final weights under the person's own names."""
    execution = case.execution_with(use)
    seat = strategy(use).seats(host(use.device), case.batch, execution)[group.rank]
    work = workload(case.network, {"dropout": case.dropout})
    torch.manual_seed(5)
    train = TrainSpec(
        batch=case.batch,
        optimizer=case.optimizer,
        lr=case.lr,
        momentum=case.momentum,
        clip_norm=case.clip_norm,
        schedule=case.schedule,
        warmup_steps=case.warmup_steps,
    )
    model = work.model()
    split = patterns(case.rows)
    rows = rows_of(split, torch.device(seat.devices[0]), work, parameter_type(case.precision), execution)
    decided, _ = strategy(use).decide(work, model, seat, execution, partial(sample_of, rows))
    learner = decided.build(work, model, seat, train, execution)
    learner.plan_for(case.steps)
    share = partial(share_of, seat.rows, case.batch, unit=execution.unit)
    feed, _ = feeder(execution, rows, case.batch, share, 1, 1)
    if learner.replays is not None:
        feed, complete = unfinished(feed, execution, rows)
        learner.replays.finish_batches(complete)
    if execution.compile:
        learner.compile_around()
    losses = list[float]()
    epochs = (feed(rows, order_of(1, epoch, case.rows), case.batch, share) for epoch in itertools.count())
    batches = itertools.chain.from_iterable(epochs)
    while len(losses) < case.steps:
        first = len(losses)
        # Twice, since a learner is settled on the way, too.
        many = (case.steps // 3 if not first else case.steps) - first
        sums, counts = learner.steps(itertools.islice(batches, many), lambda _: None, first)
        known = [total for total in sums if total is not None]
        assert known or not seat.tells
        # Others may know it, too, as where seats compute the same.
        totals = torch.hstack(known).tolist() if seat.tells else [0.0] * len(counts)
        losses += [total / max(1, count) for total, count in zip(totals, counts, strict=True)]
        learner.settle(seat.batch / case.batch / group.partners, group.add_up)
    return learner, {"losses": np.array(losses), **weights(learner, group)}


def weights(learner: Learner, group: Group) -> dict[str, np.ndarray]:
    """Under the person's own names. Only rank 0 need know all of them; others may have nothing in their place."""
    known, shapes = learner.core.state_dict() | learner.state()["model"], learner.shapes()
    # Copies, since on a CPU the learner goes on changing the tensors.
    whole = {n: value.cpu().numpy().copy() for n, value in known.items() if tuple(value.shape) == shapes[n]}
    assert group.rank or whole.keys() == shapes.keys()
    return whole


def judge(learner: Learner, use: StrategyUse, group: Group) -> dict[str, np.ndarray]:
    """Right answers and rows judged over all seats, on an odd number of rows that learning has not seen."""
    device = torch.device(strategy(use).seats(host(use.device), 64)[group.rank].devices[0])
    work = workload("mlp", {"dropout": 0.0})
    rows = rows_of(patterns(4003), device, work, torch.float32)
    desk = Desk(learner, group, time.monotonic, synchroniser([device]), lambda _: None, lambda _: None)
    share = partial(share_of, (0, 64), 64)
    course = Course(rows, None, None, work.metrics, 64, share, seed=0, epochs=1, steps=None)
    _, (mean,), judged = evaluate(desk, rows, course)
    return {"right": np.array(round(mean * judged)), "judged": np.array(judged)}


def main() -> None:
    take_part()
    leave()


def take_part() -> None:
    use, rank = msgspec.json.decode(sys.argv[1], type=StrategyUse), int(sys.argv[2])
    folder, state = Path(sys.argv[3]), Path(sys.argv[4])
    torch.set_num_threads(1)
    if use.device == "cpu":
        learners.recorder_on = lambda _: FakeRecorder()
    seats = strategy(use).seats(host(use.device), 64)
    group = meet(seats, rank, folder, 60.0, needs_group=STRATEGIES[use.name].grouped, captured=True)
    for number, case in enumerate(CASES):
        if not compared(number, use):
            continue
        learner, results = follow(case, use, group)
        np.savez(folder / f"{number}-{rank}.npz", **results)
        if number == 0:
            if not state.exists():
                torch.save(learner.state(), state)
            learner.load(torch.load(state, weights_only=True))
            np.savez(folder / f"judged-{rank}.npz", **judge(learner, use, group))


if __name__ == "__main__":
    main()
