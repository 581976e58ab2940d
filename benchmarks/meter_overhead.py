"""What reading meters costs: steps of one seat while its parent samples power, against the same without.

    python benchmarks/meter_overhead.py [--device cuda:0] [--sample-s 0.05] [--pairs 40] [--threads N]

A seat trains in a process of its own, half a second at a time, told by its parent when to go; in every other turn the
parent samples every meter that this machine has at the interval and reads it at both edges, as a campaign does.
Where no meter can be read, a powercap tree of two packages in a temporary folder stands in: opening and parsing the
files is the work, and a line says so. Prints the median of the ratios pair by pair, and exits with 1 where sampling
costs more than 0.5 % of throughput.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path

import torch
from overhead import BATCH, threads_of

from escala.meters import POWER_METERS
from escala.meters.base import Bench, PowerMeter
from escala.meters.rapl import opened
from escala.meters.sampler import Sampler
from escala.plan.preflight import Question, preflight
from escala.terms.errors import Unavailable
from escala.terms.host import Host

LIMIT = 0.005
TURN_S = 0.5


def train_when_told(pipe: Connection, device_name: str, workload_name: str, threads: int) -> None:
    """The seat: trains for a turn whenever a number of steps comes, and answers with its seconds."""
    from functools import partial

    from escala.data.base import Request
    from escala.data.prepared import cache_folder, load, prepare
    from escala.execution.feed import rows_of
    from escala.execution.stepping import Stepper
    from escala.execution.synchronise import synchroniser
    from escala.run.group import Group
    from escala.run.loop import Course, Desk, follow, warm_up
    from escala.strategies.learner import PlainLearner
    from escala.strategies.seating import share_of
    from escala.terms.experiment import TrainSpec
    from escala.workloads import workload

    device = torch.device(device_name)
    torch.set_num_threads(threads)
    prepared = prepare(Request("synthetic", validation=0.0), cache_folder(os.environ), os.environ, lambda _: None)
    work, train = workload(workload_name, {}), TrainSpec(batch=BATCH)
    model = work.model().to(device)
    stepper = Stepper(work.optimizer(model.parameters(), train), train, "fp32", device)
    learner = PlainLearner(work, model, model, stepper, "fp32", averaged_over=1, evaluate_wrapped=False)
    rows = rows_of(load(Path(prepared.folder))["train"], device, work, torch.float32)
    desk = Desk(learner, Group(0, 1), time.monotonic, synchroniser([device]), lambda _: None, lambda _: None)
    share = partial(share_of, (0, BATCH), BATCH)

    def course(steps: int) -> Course:
        return Course(rows, None, None, work.metrics, BATCH, share, seed=0, epochs=None, steps=steps)

    per_block = warm_up(desk, course(1000), block_s=0.25).steps_per_block
    pipe.send(2 * per_block)
    while steps := pipe.recv():
        pipe.send(follow(desk, course(steps), per_block).train_s)


@contextmanager
def open_meters() -> Iterator[tuple[list[PowerMeter], str]]:
    """Every meter that reads something here, or the stand-in; and a line on them."""
    host = preflight(Question(), lambda _: None).host
    with tempfile.TemporaryDirectory() as folder:
        meters = list(_real(host))
        told = ", ".join(channel.where for meter in meters for channel in meter.channels)
        if not meters:
            meters, told = (
                [opened(_tree(Path(folder)), Bench(host))],
                "a stand-in for two packages: no meter can be read here",
            )
        yield meters, told
        for meter in meters:
            meter.close()


def _real(host: Host) -> Iterator[PowerMeter]:
    for name in ("nvml", "amd", "rapl"):
        try:
            yield POWER_METERS[name](Bench(host, dict(os.environ)))
        except Unavailable as reason:
            print(f"{name}: {reason}")


def _tree(root: Path) -> Path:
    for package in range(2):
        zone = root / f"intel-rapl:{package}"
        zone.mkdir()
        for name, value in (
            ("name", f"package-{package}"),
            ("energy_uj", "5"),
            ("max_energy_range_uj", "262143328850"),
        ):
            (zone / name).write_text(f"{value}\n")
    return root


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    words.add_argument("--workload", default="mlp")
    words.add_argument("--sample-s", type=float, default=0.5)
    words.add_argument("--pairs", type=int, default=40)
    words.add_argument("--threads", type=int, help="default: what a seat would get")
    given = words.parse_args()
    threads = given.threads or threads_of(given.device)
    context = get_context("spawn")
    own, other = context.Pipe()
    seat = context.Process(target=train_when_told, args=(other, given.device, given.workload, threads), daemon=True)
    seat.start()
    with open_meters() as (meters, told):
        print(f"meters: {told}; a sample every {given.sample_s:g} s")
        steps = own.recv()

        def turn(*, metered: bool) -> float:
            sampler = Sampler(meters, given.sample_s)
            if metered:
                sampler.start()
            own.send(steps)
            seconds: float = own.recv()
            if metered:
                sampler.end()
            return seconds

        turn(metered=True)
        costs = []
        for pair in range(given.pairs):
            # Each goes first as often as the other, so that a drift of the machine's speed cancels.
            order = (True, False) if pair % 2 else (False, True)
            seconds = {metered: turn(metered=metered) for metered in order}
            costs.append(seconds[True] / seconds[False] - 1)
    own.send(0)
    seat.join()
    cost = statistics.median(costs)
    quartiles = statistics.quantiles(costs, n=4)
    # Of a median of n: 1.57 times the middle half over the root of n, the notch of a box plot.
    margin = 1.57 * (quartiles[2] - quartiles[0]) / len(costs) ** 0.5
    print(f"{given.workload} on {given.device}, {threads} threads, {len(costs)} pairs of {steps} steps")
    print(f"cost of sampling {100 * cost:+.2f} % ± {100 * margin:.2f} (at most {100 * LIMIT:g} %)")
    return int(cost > LIMIT)


if __name__ == "__main__":
    raise SystemExit(main())
