"""Does feeding keep up? Rows fed without a model against rows that the model trains on, for every workload.

    python benchmarks/feed.py [--device cuda:0] [--only mlp cnn-small ...] [--seconds 2]

Data are the generated sets, few rows of them: what is timed is slicing, moving and converting, which does not depend
on how many rows there are. Prints samples a second both ways and their ratio; exits with 1 where one is below 3.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from escala.data.base import Request
from escala.data.prepared import cache_folder, load, prepare
from escala.execution.allocator import keep_freed_memory
from escala.execution.feed import Batch, Rows, rows_of, training_batches
from escala.execution.order import order_of
from escala.execution.precision import set_flags
from escala.execution.stepping import Stepper
from escala.execution.synchronise import synchroniser
from escala.plan.cores import usable_cores
from escala.strategies.learner import PlainLearner
from escala.strategies.seating import share_of, threads_per_seat
from escala.terms.experiment import TrainSpec
from escala.terms.host import Host
from escala.workloads import workload

LIMIT = 3.0


class Case(NamedTuple):
    """A workload with the batch and rows of its study; options only where the full network would take minutes."""

    workload: str
    data: str
    batch: int
    options: dict[str, Any]


CASES = (
    Case("mlp", "synthetic:6000+100", 64, {}),
    Case("cnn-small", "synthetic:6000+100", 64, {}),
    Case("cnn-medium", "synthetic-cifar10:3000+100", 128, {}),
    Case("resnet18", "synthetic-cifar100:3000+100", 128, {}),
    Case("resnet34", "synthetic-fish:900+90", 128, {}),
    Case("transformer-small", "synthetic-imdb:600+60", 32, {}),
    Case("transformer-lm", "synthetic-wikitext:600+60", 8, {}),
    Case("bert-qa", "synthetic-squad:600+60", 16, {}),
)


def endless(rows: Rows, batch: int) -> Iterator[Batch]:
    """Training batches of epoch after epoch."""
    share = partial(share_of, (0, batch), batch)
    for epoch in itertools.count():
        yield from training_batches(rows, order_of(0, epoch, len(rows)), batch, share)


def fed_per_second(rows: Rows, batch: int, device: torch.device, seconds: float) -> float:
    """Samples a second that reach the device, converted, with nobody to train on them."""
    return _pace(endless(rows, batch), batch, device, seconds, lambda _: None)


def trained_per_second(case: Case, rows: Rows, device: torch.device, seconds: float) -> float:
    """Samples a second that the model trains on when it is handed one batch again and again."""
    work = workload(case.workload, case.options)
    model = work.model().to(device)
    train = TrainSpec(batch=case.batch, lr=1e-3)
    stepper = Stepper(work.optimizer(model.parameters(), train), train, "fp32", device)
    learner = PlainLearner(work, model, model, stepper, "fp32", averaged_over=1, evaluate_wrapped=False)
    one = next(endless(rows, case.batch))
    return _pace(itertools.repeat(one), case.batch, device, seconds, lambda given: learner.step(*given))


def _pace(batches: Iterator[Batch], batch: int, device: torch.device, seconds: float, use: Any) -> float:
    wait = synchroniser([device])
    for given in itertools.islice(batches, 2):
        use(given)
    wait()
    done, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds or done < 3:
        use(next(batches))
        done += 1
        # A queue may not grow without end, or the device would be asked to finish long after the time is up.
        if done % 50 == 0:
            wait()
    wait()
    return done * batch / (time.perf_counter() - began)


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    words.add_argument("--only", nargs="+", default=[case.workload for case in CASES])
    words.add_argument("--seconds", type=float, default=2.0)
    given = words.parse_args()

    device = torch.device(given.device)
    keep_freed_memory()
    torch.set_num_threads(threads_per_seat(Host("", usable_cores(), 0, ""), 1, device.type))
    set_flags("fp32")
    cache = cache_folder(os.environ)
    print(f"{'workload':18} {'batch':>5} {'fed/s':>12} {'trained/s':>12} {'ratio':>8}")
    worst = float("inf")
    for case in (case for case in CASES if case.workload in given.only):
        work = workload(case.workload, case.options)
        prepared = prepare(Request(case.data, 0.0, form=work.form()), cache, os.environ, lambda _: None)
        rows = rows_of(load(Path(prepared.folder))["train"], device, work, torch.float32)
        fed = fed_per_second(rows, case.batch, device, given.seconds)
        trained = trained_per_second(case, rows, device, given.seconds)
        worst = min(worst, fed / trained)
        print(f"{case.workload:18} {case.batch:5} {fed:12,.0f} {trained:12,.1f} {fed / trained:8.1f}", flush=True)
    print(f"least ratio {worst:.1f} (at least {LIMIT:g})")
    return int(worst < LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
