"""What training costs on GPUs: tutorials' loops, the best ones by hand, and escala's, side by side on one machine.

    python benchmarks/gpu.py [--only mlp ...] [--ways 1] [--seconds 20] [--musts] [--without NCCL ...]
                             [--out rates.json] [--smoke]

Every contestant runs in fresh processes of its own: it warms up, and then makes the same number of steps seven times,
in about `--seconds` seconds; the median counts. With `--ways 2` or more, captured seats of `ddp` are set beside one
captured seat: each with the whole batch (weak scaling), resnet34 also with its part of it (strong scaling). What has
a word of `--without` in its title is left out. Prints rates and ratios, and exits with 1 where a must is missed. On a
processor, and with `--smoke`, everything is small and nothing is judged.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import torch
from gpu_by_hand import Run, eager, graphed, graphed_resident, loaded
from gpu_others import jax_scan, lightning
from gpu_seats import answers
from gpu_works import WORKS, Work, flops_per_sample, small

from escala.execution.feed import rows_of
from escala.execution.feeds import feeder, unfinished
from escala.execution.precision import parameter_type
from escala.execution.synchronise import synchroniser
from escala.plan.cores import usable_cores
from escala.run.capture_ahead import capture_ahead
from escala.run.compile_ahead import compile_ahead
from escala.run.group import Group, leave, meet
from escala.run.loop import Course, Desk, follow, warm_up
from escala.strategies import strategy
from escala.strategies.seating import divide, share_of, threads_per_seat
from escala.terms.experiment import ExecutionSpec
from escala.terms.host import Host
from escala.terms.trial import Seat, StrategyUse

PLAIN, BEST, STRONG = "escala, plain", "escala, best known", "escala, best known, one batch for all"
LOADED, EAGER, BY_HAND = "plain loop, DataLoader", "plain loop, fp32 eager", "by hand, compiled and captured"
LIGHTNING, JAX = "Lightning", "JAX, one scan"
BLOCKS = 7
FIRST_STEPS = {"cuda": 16, "cpu": 2}


@dataclass(frozen=True)
class Must:
    """`ours` must be `least` times as fast as `other`, None: only hoped for; `aim`: hoped for."""

    work: str
    ours: str
    other: str
    least: float | None
    aim: float | None = None
    ways: int = 1


MUSTS = (
    Must("mlp", BEST, LOADED, 25.0),
    Must("mlp", BEST, LIGHTNING, 35.0),
    Must("mlp", BEST, JAX, None, 1.0),
    Must("mlp", BEST, BY_HAND, None, 1.0),
    Must("resnet18", BEST, EAGER, 6.0),
    Must("resnet18", BEST, BY_HAND, None, 1.05),
    Must("resnet34", BEST, EAGER, 6.5),
    Must("resnet34", BEST, BY_HAND, 1.0, 1.1),
    Must("transformer-lm", BEST, EAGER, 6.5),
    Must("transformer-lm", BEST, BY_HAND, 0.97, 1.1),
    *(Must(work, f"{BEST} x2", BEST, 1.85, 1.95, 2) for work in ("resnet34", "transformer-lm")),
    *(Must(work, f"{BEST} x4", BEST, 3.7, 3.85, 4) for work in ("resnet34", "transformer-lm")),
    *(Must("transformer-lm", f"{BEST} x{ways}, gradients bf16", BEST, None, 0.95 * ways, ways) for ways in (2, 4)),
    *(
        Must(work, f"{BEST} x{ways}", f"{BEST} x{ways}, {other}", None, 1.0, ways)
        for work in ("resnet34", "transformer-lm", "resnet18")
        for ways in (2, 4)
        for other in ("sent during the way back", "through NCCL", "in buckets")
    ),
    Must("resnet18", f"{BEST} x2", BEST, None, 1.95, 2),
    Must("resnet18", f"{BEST} x4", BEST, 3.45, 3.85, 4),
    Must("resnet34", f"{STRONG} x4", BEST, 2.2, 3.0, 4),
)


@dataclass(frozen=True)
class Contestant:
    """Who trains, on how many seats; `package`: what must be installed for it; `batch`: the global one."""

    title: str
    make: Callable[[Work, torch.device], Run] | None = None
    execution: ExecutionSpec | None = None
    ways: int = 1
    batch: int = 0
    package: str = "torch"


def ratios(name: str, ways: int, *, hoped: bool) -> list[Must]:
    """Those of a network on so many cards that must be reached, and with `hoped` those that are only hoped for."""
    return [one for one in MUSTS if one.work == name and one.ways == ways and (hoped or one.least is not None)]


def contestants(name: str, work: Work, ways: int) -> list[Contestant]:
    best = Contestant(BEST, execution=work.best, batch=work.batch)
    if ways > 1:
        # Between processors it would be the host's memory, which has no step to hide behind.
        after = msgspec.structs.replace(work.best, overlap="optimizer")
        peers = msgspec.structs.replace(after, transport="shm") if work.best.capture else after
        weak = Contestant(f"{BEST} x{ways}", execution=peers, ways=ways, batch=work.batch * ways)
        strong = replace(weak, title=f"{STRONG} x{ways}", batch=work.batch)

        def beside(title: str, execution: ExecutionSpec, **changed: str) -> Contestant:
            changed_to = msgspec.structs.replace(execution, **changed)
            return replace(weak, title=f"{BEST} x{ways}, {title}", execution=changed_to)

        others = [
            beside("sent during the way back", peers, overlap="backward"),
            beside("through NCCL", after),
            beside("in buckets", work.best),
        ]
        # On two cards a ninth of the language model's step is its exchange, which 16 bits halve.
        narrow = [beside("gradients bf16", work.best, compression="bf16")] if work.best.precision == "bf16" else []
        more = {"resnet34": [strong], "transformer-lm": narrow}
        return [best, weak, *others, *more.get(name, [])]
    first = Contestant(LOADED, loaded) if name == "mlp" else Contestant(EAGER, eager)
    others = [Contestant(LIGHTNING, lightning, package="lightning"), Contestant(JAX, jax_scan, package="jax")]
    return [
        first,
        *(others if name == "mlp" else []),
        Contestant(BY_HAND, graphed_resident if name == "mlp" else graphed),
        Contestant(PLAIN, execution=ExecutionSpec(), batch=work.batch),
        best,
    ]


def ours(work: Work, one: Contestant, rank: int, kind: str) -> Run:
    """escala's own loop over the learner that the strategy builds."""
    execution = one.execution or ExecutionSpec()
    made, train = work.made(), msgspec.structs.replace(work.train(), batch=one.batch)
    seat = seats_of(one, kind)[rank]
    device = torch.device(seat.devices[0])
    use = StrategyUse("single" if one.ways == 1 else "ddp", one.ways, kind)
    learner = strategy(use).build(made, made.model(), seat, train, execution)
    rows = rows_of(work.split(one.batch), device, made, parameter_type(execution.precision), execution)
    share = partial(share_of, seat.rows, one.batch)
    feed, _ = feeder(execution, rows, one.batch, share, 0, seat.threads)
    if learner.replays is not None:
        feed, complete = unfinished(feed, execution, rows)
        learner.replays.finish_batches(complete)
    wait, group = synchroniser([device]), Group(rank, one.ways)
    desk = Desk(learner, group, time.monotonic, wait, lambda _: None, lambda _: None)
    course = Course(rows, None, None, made.metrics, one.batch, share, seed=0, epochs=None, steps=1, feed=feed)
    if execution.compile:
        compile_ahead(desk, course)
    if learner.replays is not None:
        capture_ahead(desk, course)
    per_block = warm_up(desk, course, block_s=0.25).steps_per_block
    return lambda steps: follow(desk, replace(course, steps=steps), per_block).train_s


def seats_of(one: Contestant, kind: str) -> tuple[Seat, ...]:
    host = Host(cpu="", cores=usable_cores(), memory_bytes=0, system="")
    # In small, threads would only wait for each other.
    threads = threads_per_seat(host, one.ways, kind) if kind == "cuda" else 1
    devices = [f"{kind}:{rank}" if kind == "cuda" else kind for rank in range(one.ways)]
    shares = divide(max(one.batch, one.ways), one.ways)
    return tuple(Seat(rank, 0, (devices[rank],), shares[rank], threads) for rank in range(one.ways))


def rate_of(run: Run, batch: int, group: Group, seconds: float, first: int) -> float:
    """Samples a second, the median of blocks of `first` steps or more, as long as the slowest seat's."""

    def together(steps: int) -> float:
        return max(row[0] for row in group.gather([run(steps)]))

    together(first)
    taken = max(together(first), 1e-6)
    steps = max(first, round(first * seconds / BLOCKS / taken))
    return batch * steps / statistics.median(together(steps) for _ in range(BLOCKS))


def compete(
    rank: int, meeting: str, line: Connection, work: Work, one: Contestant, kind: str, seconds: float
) -> None:
    """The process of one seat; rank 0 tells the rate, or why there is none."""
    seats = seats_of(one, kind)
    torch.set_num_threads(seats[rank].threads)
    torch.manual_seed(0)
    try:
        captured = one.execution is not None and bool(one.execution.capture)
        meet(seats, rank, Path(meeting), 600.0, needs_group=one.ways > 1, captured=captured)
        run = one.make(work, torch.device(seats[rank].devices[0])) if one.make else ours(work, one, rank, kind)
        found: float | str = rate_of(run, one.batch or work.batch, Group(rank, one.ways), seconds, FIRST_STEPS[kind])
        del run
        leave()
    except Exception as error:
        traceback.print_exc()
        found = f"{type(error).__name__}: {error}".splitlines()[0]
    line.send(found)


def measured(work: Work, one: Contestant, kind: str, seconds: float) -> float | str:
    """Samples a second, or why there are none."""
    if find_spec(one.package) is None:
        return f"left out, as {one.package} is not installed"
    found = answers(compete, one.ways, work, one, kind, seconds)
    return next((one for one in found if isinstance(one, str)), found[0])


def judged(musts: Sequence[Must], rates: dict[str, float | str], *, judging: bool) -> bool:
    """Prints every ratio; whether none that must be reached is missed."""
    sound = True
    for must in musts:
        mine, other = rates.get(must.ours, "left out here"), rates.get(must.other, "left out here")
        wanted = ", ".join(
            f"{word} {value:g}" for word, value in (("must", must.least), ("aim", must.aim)) if value is not None
        )
        told = f"  {must.ours} against {must.other}"
        if isinstance(mine, str) or isinstance(other, str):
            # What is not installed cannot be compared with; what failed has not reached anything.
            absent = any(isinstance(one, str) and one.startswith("left out") for one in (mine, other))
            missed = judging and must.least is not None and not absent
            print(f"{told}: not known ({wanted})" + (": MISSED" if missed else ""))
        else:
            ratio = mine / other
            missed = judging and must.least is not None and ratio < must.least
            reached = must.aim is None or ratio >= must.aim
            word = (
                "MISSED"
                if missed
                else "reached"
                if reached
                else "reached, not the aim"
                if must.least
                else "not the aim"
            )
            print(f"{told}: {ratio:.3f} ({wanted}): {word if judging else 'not judged here'}")
        sound = sound and not missed
    return sound


def chosen(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=tuple(WORKS))
    parser.add_argument("--ways", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--musts", action="store_true", help="only what a ratio that must be reached is made of")
    parser.add_argument("--without", action="append", default=[], metavar="WORD", help="leave contestants out")
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--out", type=Path, help="also write all rates here, as JSON")
    return parser.parse_args(words)


def main(words: Sequence[str]) -> int:
    given = chosen(words)
    kind = "cuda" if torch.cuda.is_available() and not given.smoke else "cpu"
    card = torch.cuda.get_device_name() if kind == "cuda" else "a processor"
    print(f"{given.ways} x {card}, torch {torch.__version__}")
    found = dict[str, dict[str, float | str]]()
    verdicts = list[bool]()
    for name in given.only or WORKS:
        work = small(name) if kind == "cpu" else WORKS[name]
        operations = flops_per_sample(work)
        print(f"\n{name}, batch {work.batch}, {operations:,} floating-point operations a sample")
        rates = found[name] = {}
        musts = ratios(name, given.ways, hoped=not given.musts)
        needed = {title for must in musts for title in (must.ours, must.other)}
        for one in contestants(name, work, given.ways):
            needless = given.musts and one.title not in needed
            if needless or any(word in one.title for word in given.without):
                continue
            began = time.perf_counter()
            rate = rates[one.title] = measured(work, one, kind, given.seconds)
            told = (
                rate if isinstance(rate, str) else f"{rate:12,.0f} samples/s {rate * operations / 1e12:8.2f} TFLOP/s"
            )
            print(f"{one.title:52}{told}   in {time.perf_counter() - began:.0f} s with starting", flush=True)
        verdicts.append(judged(musts, rates, judging=kind == "cuda"))
        if given.out:
            # After each network, so that a run that is stopped leaves what it has.
            given.out.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    if kind == "cpu":
        # A trial run in small: whatever did not run is a fault of the script.
        ran = itertools.chain.from_iterable(rates.values() for rates in found.values())
        return int(any(isinstance(rate, str) and not rate.startswith("left out") for rate in ran))
    return int(not all(verdicts))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
