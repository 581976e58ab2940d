"""What escala's loop costs: its `single` eager loop against a bare hand-written one, alternating in one process.

    python benchmarks/overhead.py [--device cuda:0] [--data fashion-mnist] [--pairs 24] [--processes 5] [--threads N]

Both train the same network on the same rows in the same order, 200 steps at a time: short turns meet the same moods
of a noisy machine. Several fresh processes in turn, because where the memory of one happens to lie is worth a percent
either way to a network on a CPU. Prints for each the time of a step and the median of the ratios pair by pair; exits
with 1 where the median over the processes is above 1.01.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy

from escala.data.base import Request
from escala.data.prepared import cache_folder, load, prepare
from escala.execution.allocator import keep_freed_memory
from escala.execution.feed import rows_of
from escala.execution.order import order_of
from escala.execution.precision import set_flags
from escala.execution.stepping import Stepper
from escala.execution.synchronise import synchroniser
from escala.plan.cores import usable_cores
from escala.run.group import Group
from escala.run.loop import Course, Desk, follow, warm_up
from escala.strategies.learner import PlainLearner
from escala.strategies.seating import share_of, threads_per_seat
from escala.terms.experiment import TrainSpec
from escala.terms.host import Host
from escala.workloads import workload

LIMIT = 1.01
BATCH = 64
STEPS = 200


def bare_steps(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    images: torch.Tensor,
    labels: torch.Tensor,
    order: torch.Tensor,
    device: torch.device,
) -> float:
    """Seconds of the first steps of an epoch, written as anybody would."""
    wait = synchroniser([device])
    wait()
    began = time.perf_counter()
    for start in range(0, STEPS * BATCH, BATCH):
        rows = order[start : start + BATCH]
        inputs = images[rows].to(device).div(127.5).sub_(1).unsqueeze(1)
        targets = labels[rows].to(device)
        optimizer.zero_grad(set_to_none=True)
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
    wait()
    return time.perf_counter() - began


def measured_pairs(
    device_name: str, data: str, workload_name: str, pairs: int, threads: int
) -> list[tuple[float, float]]:
    """Seconds of 200 steps by escala's loop and by the bare one, pair by pair, in this process."""
    # As in a seat. For both: a process has one allocator.
    keep_freed_memory()
    device = torch.device(device_name)
    torch.set_num_threads(threads)
    prepared = prepare(Request(data, validation=0.0), cache_folder(os.environ), os.environ, print)
    split = load(Path(prepared.folder))["train"]
    work = workload(workload_name, {})
    train = TrainSpec(batch=BATCH)

    set_flags("fp32")
    # One network and one optimiser for both: two networks lie differently in memory, which alone is worth a percent.
    model = work.model().to(device)
    optimizer = work.optimizer(model.parameters(), train)
    stepper = Stepper(optimizer, train, "fp32", device)
    learner = PlainLearner(work, model, model, stepper, "fp32", averaged_over=1, evaluate_wrapped=False)
    rows = rows_of(split, device, work, torch.float32)
    desk = Desk(learner, Group(0, 1), time.monotonic, synchroniser([device]), lambda _: None, lambda _: None)
    share = partial(share_of, (0, BATCH), BATCH)
    course = Course(rows, None, None, work.metrics, BATCH, share, seed=0, epochs=None, steps=STEPS)
    per_block = warm_up(desk, course, block_s=0.25).steps_per_block

    order = torch.from_numpy(order_of(0, 0, len(rows)))
    bare_steps(model, optimizer, rows.raw, rows.targets, order, device)

    times = []
    for pair in range(pairs):
        # Each goes first as often as the other, so that a drift of the machine's speed cancels.
        ours_first = pair % 2 == 0
        ours = follow(desk, course, per_block).train_s if ours_first else 0.0
        bare = bare_steps(model, optimizer, rows.raw, rows.targets, order, device)
        ours = ours or follow(desk, course, per_block).train_s
        times.append((ours, bare))
    return times


def threads_of(device: str) -> int:
    """As many threads as the only seat of this host has."""
    host = Host(cpu="", cores=usable_cores(), memory_bytes=0, system="")
    return threads_per_seat(host, 1, torch.device(device).type)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    words.add_argument("--data", default="synthetic")
    words.add_argument("--workload", default="mlp")
    words.add_argument("--pairs", type=int, default=24)
    words.add_argument("--processes", type=int, default=5)
    words.add_argument("--threads", type=int, help="default: what a seat would get")
    given = words.parse_args()
    threads = given.threads or threads_of(given.device)

    print(
        f"{given.workload} on {given.device}, batch {BATCH}, {threads} threads, "
        f"{given.pairs} pairs of {STEPS} steps a process"
    )
    print("process  escala ms/step  bare ms/step  ratio (median of pairs)")
    ratios = []
    for number in range(given.processes):
        with get_context("spawn").Pool(1) as fresh:
            pairs = fresh.apply(measured_pairs, (given.device, given.data, given.workload, given.pairs, threads))
        ratio = statistics.median(ours / bare for ours, bare in pairs)
        ours, bare = (1e3 * statistics.median(side) / STEPS for side in zip(*pairs, strict=True))
        print(f"{number + 1:7}  {ours:14.4f}  {bare:12.4f}  {ratio:.4f}", flush=True)
        ratios.append(ratio)
    overall = statistics.median(ratios)
    print(f"median of processes {overall:.4f} (at most {LIMIT})")
    return int(overall > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
