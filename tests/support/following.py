"""One learner, plain or captured, over epochs of one set of rows."""

from __future__ import annotations

from typing import Any

import torch
from arithmetic import patterns
from msgspec import structs

from escala.data.base import Split
from escala.execution.feed import Rows, rows_of
from escala.execution.feeds import feeder, unfinished
from escala.execution.generators import generator_states, set_generator_states
from escala.execution.order import order_of
from escala.execution.precision import parameter_type
from escala.strategies import strategy
from escala.strategies.seating import share_of
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.trial import Seat, StrategyUse
from escala.workloads import workload

BATCH = 16
ROWS = 4 * BATCH + 5
STEPS = 10
"""Of two epochs of five, the last of each shorter."""
PLAIN = TrainSpec(batch=BATCH)


class Following:
    """Makes the same losses whenever it is made, and goes on where it was with random numbers of its own."""

    def __init__(
        self,
        execution: ExecutionSpec,
        train: TrainSpec = PLAIN,
        network: str = "normed:plain",
        split: Split | None = None,
        device: str = "cpu",
        **options: Any,
    ) -> None:
        torch.manual_seed(5)
        work = workload(network, options)
        seat = Seat(0, 0, (device,), (0, train.batch), 1)
        self.learner = strategy(StrategyUse("single", 1, "cpu")).build(work, work.model(), seat, train, execution)
        self.learner.plan_for(STEPS)
        dtype = parameter_type(execution.precision)
        self.rows: Rows = rows_of(split or patterns(ROWS), torch.device(device), work, dtype, execution)
        self.batch = train.batch
        self.share = lambda size: share_of((0, train.batch), train.batch, size)
        self.feed, _ = feeder(execution, self.rows, train.batch, self.share, 1, 1)
        if self.learner.replays is not None:
            self.feed, complete = unfinished(self.feed, execution, self.rows)
            self.learner.replays.finish_batches(complete)
        if execution.compile:
            self.learner.compile_around()
        self.epoch = 0
        self.device = torch.device(device)
        torch.manual_seed(9)
        self.drawn = generator_states(self.device)

    def losses(self, epochs: int = 2) -> list[float]:
        found = list[float]()
        set_generator_states(self.device, self.drawn)
        for _ in range(epochs):
            order = order_of(1, self.epoch, len(self.rows))
            sums, counts = self.learner.steps(self.feed(self.rows, order, self.batch, self.share))
            found += (torch.hstack(sums).double().cpu() / torch.tensor(counts)).tolist()
            self.epoch += 1
        self.drawn = generator_states(self.device)
        return found


def captured(execution: ExecutionSpec, steps: int) -> ExecutionSpec:
    """The same with so many steps in a graph."""
    return structs.replace(execution, capture=steps)
