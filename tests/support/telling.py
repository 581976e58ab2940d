"""One seat's step of a language model whose rows hold 1 and 9 tokens that count.

`python telling.py STRATEGY WAYS RANK FOLDER MICROBATCH` (0: none): leaves `RANK.npz` with this seat's part of the
loss and the gradient that it stepped by.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np
import torch
from arithmetic_cases import host

from escala.data.base import Split
from escala.execution.feed import rows_of, sample_of, training_batches
from escala.execution.order import order_of
from escala.run.group import leave, meet
from escala.strategies import STRATEGIES, strategy
from escala.strategies.seating import share_of
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.trial import StrategyUse
from escala.workloads import workload
from escala.workloads.base import Workload

LENGTH, VOCABULARY = 9, 11
COUNTS = (1, 9)


def work() -> Workload:
    options = {"vocabulary": VOCABULARY, "length": LENGTH, "layers": 1, "width": 8, "heads": 2, "ff": 8}
    return workload("transformer-lm", {**options, "dropout": 0.0})


def split() -> Split:
    """Two rows; what lies past the tokens that count must not be looked at."""
    tokens = np.random.default_rng(1).integers(0, VOCABULARY, (2, LENGTH + 1), dtype=np.int32)
    return Split(tokens, np.array(COUNTS, dtype=np.int64)[:, None])


def main() -> None:
    train()
    leave()


def train() -> None:
    name, ways, rank, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    torch.set_num_threads(1)
    execution = ExecutionSpec("fp64", microbatch=int(sys.argv[5]) or None)
    chosen = strategy(StrategyUse(name, ways, "cpu", simulate=name == "layers"))
    seats = chosen.seats(host("cpu"), 2, execution)
    group = meet(seats, rank, folder, 60.0, needs_group=STRATEGIES[name].grouped)
    torch.manual_seed(5)
    lm = work()
    model = lm.model()
    rows = rows_of(split(), torch.device("cpu"), lm, torch.float64)
    decided, _ = chosen.decide(lm, model, seats[rank], execution, partial(sample_of, rows))
    learner = decided.build(lm, model, seats[rank], TrainSpec(batch=2), execution)
    share = partial(share_of, seats[group.rank].rows, 2)
    ((inputs, targets, count, size),) = training_batches(rows, order_of(0, 0, 2), 2, share)
    told = learner.step(inputs, targets, count, size)
    loss = 0.0 if told is None else told.item() / count
    grads = {key: value.grad.numpy() for key, value in learner.core.named_parameters() if value.grad is not None}
    np.savez(folder / f"{rank}.npz", loss=loss, count=count, **grads)


if __name__ == "__main__":
    main()
