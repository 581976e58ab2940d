"""What escala's loop costs: its `single` eager loop against a bare hand-written one, alternating in one process.

    python benchmarks/overhead.py [--device cuda] [--data fashion-mnist] [--pairs 15]

Both train the same network on the same rows in the same order. Prints the time of an epoch each way and the median of
the ratios pair by pair; exits with 1 where that median is above 1.01.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from functools import partial
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from escala.data.base import Request
from escala.data.prepared import cache_folder, load, prepare
from escala.execution.feed import rows_of
from escala.execution.order import order_of
from escala.execution.synchronise import synchroniser
from escala.plan.cores import usable_cores
from escala.run.group import Group
from escala.run.loop import Course, Desk, follow, warm_up
from escala.strategies import strategy
from escala.strategies.seating import share_of
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.trial import Seat, StrategyUse
from escala.workloads import workload

LIMIT = 1.01
BATCH = 64


def bare_epoch(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    images: torch.Tensor,
    labels: torch.Tensor,
    order: torch.Tensor,
    device: torch.device,
) -> float:
    """Seconds of one epoch, written as anybody would."""
    wait = synchroniser([device])
    wait()
    began = time.perf_counter()
    for start in range(0, len(order), BATCH):
        rows = order[start : start + BATCH]
        inputs = images[rows].to(device).div(255).unsqueeze(1)
        targets = labels[rows].to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
    wait()
    return time.perf_counter() - began


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    words.add_argument("--data", default="synthetic")
    words.add_argument("--workload", default="mlp")
    words.add_argument("--pairs", type=int, default=15)
    given = words.parse_args()

    device = torch.device(given.device)
    torch.set_num_threads(usable_cores())
    prepared = prepare(Request(given.data, validation=0.0), cache_folder(os.environ), os.environ, print)
    split = load(Path(prepared.folder))["train"]
    work = workload(given.workload, {})
    train = TrainSpec(batch=BATCH)

    seat = Seat(0, 0, (given.device,), (0, BATCH), usable_cores())
    learner = strategy(StrategyUse("single", 1, device.type)).build(
        work, work.model(), seat, train, ExecutionSpec("fp32")
    )
    rows = rows_of(split, device, partial(work.inputs, dtype=torch.float32), work.count)
    desk = Desk(learner, Group(0, 1), time.monotonic, synchroniser([device]), lambda _: None, lambda _: None)
    share = partial(share_of, seat.rows, BATCH)
    course = Course(rows, None, None, work.score, BATCH, share, seed=0, epochs=1, steps=None)
    per_block = warm_up(desk, course, block_s=0.25).steps_per_block

    model = work.model().to(device)
    optimizer = work.optimizer(model.parameters(), train)
    order = torch.from_numpy(order_of(0, 0, len(rows)))
    bare_epoch(model, optimizer, rows.raw, rows.targets, order, device)

    pairs = []
    for pair in range(given.pairs):
        # Each goes first as often as the other, so that a drift of the machine's speed cancels.
        ours_first = pair % 2 == 0
        ours = follow(desk, course, per_block).train_s if ours_first else 0.0
        bare = bare_epoch(model, optimizer, rows.raw, rows.targets, order, device)
        ours = ours or follow(desk, course, per_block).train_s
        pairs.append((ours, bare))
    ratio = statistics.median(ours / bare for ours, bare in pairs)
    print(f"{given.workload} on {given.device}, {len(rows):,} rows, batch {BATCH}, {given.pairs} pairs")
    print(f"escala {statistics.median(pair[0] for pair in pairs):.3f} s an epoch (median)")
    print(f"bare   {statistics.median(pair[1] for pair in pairs):.3f} s an epoch (median)")
    print(f"ratio  {ratio:.4f} (median of pairs; at most {LIMIT})")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
