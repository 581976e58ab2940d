"""What training on this machine's cores costs: bare loops, escala's single seat, and two seats by either transport.

    python benchmarks/cpu.py [--workload mlp] [--workload cnn-small] [--data synthetic] [--rounds 40]

All contestants live side by side in processes of their own, asleep but for their turns; a turn is some steps at a
global batch of 64, about a quarter of a second. Every round gives each a turn, in an order that rotates, so that all
meet the same moods of a noisy machine. Prints the time of a step and medians of ratios round by round, and exits with
1 where one that must be reached is missed. Cores are divided equally among the seats, as everywhere in escala.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

import msgspec
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from escala.data.base import Request
from escala.data.prepared import cache_folder, load, prepare
from escala.execution.allocator import keep_freed_memory
from escala.execution.binding import bound
from escala.execution.feed import rows_of
from escala.execution.synchronise import synchroniser
from escala.plan.cores import usable_cores
from escala.run.group import Group, leave, meet
from escala.run.loop import Course, Desk, follow, warm_up
from escala.strategies import strategy
from escala.strategies.seating import share_of, with_cores
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.trial import Seat, StrategyUse
from escala.workloads import workload

BATCH = 64
TURN_STEPS = {"mlp": 64, "cnn-small": 16}
Turn = Callable[[], float]
Batches = Iterator[tuple[torch.Tensor, torch.Tensor]]


@dataclass(frozen=True)
class Contestant:
    """Who trains: a bare loop or escala's, with how many seats, and how escala runs a step."""

    loop: Literal["loader", "sliced", "escala"]
    ways: int = 1
    execution: ExecutionSpec = field(default_factory=ExecutionSpec)


CONTESTANTS = {
    "bare loop, DataLoader": Contestant("loader"),
    "bare loop, rows sliced": Contestant("sliced"),
    "escala single, plain": Contestant("escala"),
    "escala single, fused": Contestant("escala", execution=ExecutionSpec(optimizer_kernel="fused")),
    "escala single, packed": Contestant("escala", execution=ExecutionSpec(dropout_kernel="packed")),
    "escala single, packed, fused": Contestant(
        "escala", execution=ExecutionSpec(dropout_kernel="packed", optimizer_kernel="fused")
    ),
    "bare DDP x2, gloo": Contestant("sliced", ways=2),
    "escala ddp x2, gloo": Contestant("escala", ways=2, execution=ExecutionSpec(transport="gloo")),
    "escala ddp x2, shm": Contestant("escala", ways=2, execution=ExecutionSpec(transport="shm")),
    "escala ddp x2, shm, pinned": Contestant("escala", ways=2, execution=ExecutionSpec(transport="shm", pin=True)),
    "escala ddp x2, shm, pinned, fused": Contestant(
        "escala", ways=2, execution=ExecutionSpec(transport="shm", pin=True, optimizer_kernel="fused")
    ),
    "escala ddp x2, shm, pinned, packed": Contestant(
        "escala", ways=2, execution=ExecutionSpec(transport="shm", pin=True, dropout_kernel="packed")
    ),
}


@dataclass(frozen=True)
class Must:
    """The fastest of `ours` must be at least `least` times as fast as the fastest of `others`; `aim`: hoped for."""

    what: str
    workloads: tuple[str, ...]
    ours: tuple[str, ...]
    others: tuple[str, ...]
    least: float
    aim: float


SINGLES = tuple(name for name in CONTESTANTS if name.startswith("escala single"))
SHARED = tuple(name for name in CONTESTANTS if "shm" in name)
MUSTS = (
    Must("best against the DataLoader loop", ("mlp",), (*SINGLES, *SHARED), ("bare loop, DataLoader",), 1.25, 1.25),
    # 1 % in time is what escala's own loop may cost.
    Must(
        "best against a bare loop", ("mlp", "cnn-small"), (*SINGLES, *SHARED), ("bare loop, rows sliced",), 0.99, 1.0
    ),
    Must("ddp x2 against single", ("cnn-small",), SHARED, ("escala single, plain",), 0.65, 0.9),
)


def host_here() -> Host:
    return Host(cpu="", cores=usable_cores(), memory_bytes=0, system="")


def seats_of(contestant: Contestant) -> tuple[Seat, ...]:
    use = StrategyUse("single" if contestant.ways == 1 else "ddp", contestant.ways, "cpu")
    seats = strategy(use).seats(host_here(), BATCH, contestant.execution)
    return with_cores(seats, host_here(), "cpu", contestant.execution)


def bare(contestant: Contestant, name: str, folder: str, seat: Seat) -> Turn:
    """A loop as anybody would write it; with several seats inside DDP, each with its half of every batch."""
    steps = TURN_STEPS[name]
    split = load(Path(folder))["train"]
    images, labels = torch.from_numpy(split.inputs), torch.from_numpy(split.targets)
    model: nn.Module = workload(name, {}).model()
    if contestant.ways > 1:
        model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def loaded() -> Batches:
        # Floats that are ready, as where the field's figures were measured: the loader alone is what it costs.
        ready = TensorDataset(images.float().div_(127.5).sub_(1).unsqueeze(1), labels)
        loader = DataLoader(ready, batch_size=BATCH, shuffle=True, drop_last=True)
        while True:
            yield from loader

    def sliced() -> Batches:
        while True:
            order = torch.randperm(len(images), generator=torch.Generator().manual_seed(1))
            for start in range(0, len(images) - BATCH + 1, BATCH):
                rows = order[start + seat.rows[0] : start + seat.rows[1]]
                yield images[rows].float().div_(127.5).sub_(1).unsqueeze(1), labels[rows]

    batches = loaded() if contestant.loop == "loader" else sliced()

    def turn() -> float:
        Group(seat.rank, contestant.ways).gather([0.0])
        began = time.perf_counter()
        for inputs, targets in itertools.islice(batches, steps):
            optimizer.zero_grad()
            loss = cross_entropy(model(inputs), targets)
            loss.backward()
            optimizer.step()
        return time.perf_counter() - began

    return turn


def ours(contestant: Contestant, name: str, folder: str, seat: Seat) -> Turn:
    """escala's own loop over the learner that the strategy builds."""
    device, work = torch.device("cpu"), workload(name, {})
    use = StrategyUse("single" if contestant.ways == 1 else "ddp", contestant.ways, "cpu")
    train = TrainSpec(batch=BATCH)
    learner = strategy(use).build(work, work.model(), seat, train, contestant.execution)
    rows = rows_of(load(Path(folder))["train"], device, work, torch.float32)
    group = Group(seat.rank, contestant.ways)
    desk = Desk(learner, group, time.monotonic, synchroniser([device]), lambda _: None, lambda _: None)
    share = partial(share_of, seat.rows, BATCH)
    course = Course(rows, None, None, work.metrics, BATCH, share, seed=0, epochs=None, steps=TURN_STEPS[name])
    per_block = warm_up(desk, course, block_s=0.25).steps_per_block
    return lambda: follow(desk, course, per_block).train_s


def compete(contestant: Contestant, name: str, folder: str, rank: int, meeting: str, line: Connection) -> None:
    """The process of one seat: trains a turn whenever it is told to, and tells how long it took."""
    # As in escala's seats; for the bare loops, too, or the C library's way of giving memory back would be compared.
    keep_freed_memory()
    seats = seats_of(contestant)
    torch.set_num_threads(seats[rank].threads)
    torch.manual_seed(0)
    meet(seats, rank, Path(meeting), 600.0, needs_group=contestant.ways > 1)
    with bound(seats, rank, pin=contestant.execution.pin):
        turn = (ours if contestant.loop == "escala" else bare)(contestant, name, folder, seats[rank])
        turn()
        line.send(0.0)
        while line.recv():
            line.send(turn())
    leave()


class Team:
    """The processes of one contestant."""

    def __init__(self, contestant: Contestant, name: str, folder: str) -> None:
        spawn = get_context("spawn")
        self._lines = list[Connection]()
        self._processes = list[Any]()
        self._meeting = tempfile.TemporaryDirectory(prefix="escala-")
        for rank in range(contestant.ways):
            mine, theirs = spawn.Pipe()
            process = spawn.Process(
                target=compete, args=(contestant, name, folder, rank, self._meeting.name, theirs), daemon=True
            )
            process.start()
            theirs.close()
            self._lines.append(mine)
            self._processes.append(process)
        for line in self._lines:
            line.recv()

    def turn(self) -> float:
        """Seconds of the slowest seat."""
        for line in self._lines:
            line.send(True)
        seconds: float = max(line.recv() for line in self._lines)
        return seconds

    def dismiss(self) -> None:
        for line in self._lines:
            line.send(False)
        for process in self._processes:
            process.join()
        self._meeting.cleanup()


def rounds_of(name: str, folder: str, rounds: int) -> dict[str, list[float]]:
    """Seconds of each contestant's turns, round by round."""
    teams = {title: Team(contestant, name, folder) for title, contestant in CONTESTANTS.items()}
    times: dict[str, list[float]] = {title: [] for title in teams}
    titles = list(teams)
    for number in range(rounds):
        first = number % len(titles)
        # Every other round backwards: whoever follows a slow one must not always be the same.
        for title in (titles[first:] + titles[:first])[:: 1 if number % 2 else -1]:
            times[title].append(teams[title].turn())
    for team in teams.values():
        team.dismiss()
    return times


def ratio(times: dict[str, list[float]], others: str, ours: str) -> tuple[float, float, float]:
    """Median and quartiles, over the rounds, of how many times as fast `ours` is as `others`."""
    found = [slow / fast for slow, fast in zip(times[others], times[ours], strict=True)]
    low, middle, high = statistics.quantiles(found, n=4)
    return middle, low, high


def judged(name: str, times: dict[str, list[float]]) -> bool:
    """Prints the table and every must; whether none is missed."""
    base = "escala single, plain"
    steps = TURN_STEPS[name]
    print(f"\n{name}, batch {BATCH}, {usable_cores()} cores, {len(times[base])} rounds of {steps} steps")
    print(f"{'':36}ms/step   speed against {base} (quartiles)")
    for title, seconds in times.items():
        middle, low, high = ratio(times, base, title)
        print(f"{title:36}{1e3 * statistics.median(seconds) / steps:7.3f}   {middle:.3f} ({low:.3f} to {high:.3f})")
    sound = True
    for must in MUSTS:
        if name not in must.workloads:
            continue
        middle, low, high, title = max((*ratio(times, must.others[0], title), title) for title in must.ours)
        met = middle >= must.least
        sound = sound and met
        word = "missed" if not met else "reached" if middle >= must.aim else "reached, not the aim"
        print(
            f"{must.what}: {middle:.3f} ({low:.3f} to {high:.3f}; {title}), must {must.least}, aim {must.aim}: {word}"
        )
    return sound


def chosen(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", action="append", choices=tuple(TURN_STEPS))
    parser.add_argument("--data", default="synthetic")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--out", type=Path, help="also write every turn's seconds here, as JSON")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    given = chosen(words)
    prepared = prepare(Request(given.data, validation=0.0), cache_folder(os.environ), os.environ, print)
    folder = str(prepared.folder)
    found = {name: rounds_of(name, folder, given.rounds) for name in given.workload or TURN_STEPS}
    if given.out:
        given.out.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    # Every table is printed, also after one that missed.
    verdicts = [judged(name, times) for name, times in found.items()]
    return int(not all(verdicts))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
