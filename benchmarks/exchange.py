"""What adding up a network's gradients over several GPUs takes: alone, and behind the optimiser's step.

    python benchmarks/exchange.py [--only transformer-lm ...] [--ways 2] [--out times.json] [--smoke]

For each network of `benchmarks/gpu.py` its weights, gradients and optimiser, without the network's own work: the step
alone, sums in parts through NCCL and by copies between GPUs (`overlap = "optimizer"`, without and with
`transport = "shm"`), each by themselves and with the step. All is recorded in CUDA graphs, as a captured training has
it. Prints milliseconds, the median of 7 blocks, and what the exchange adds to the step. With `--smoke` on a
processor, in small and not recorded.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import torch
from gpu_seats import answers
from gpu_works import WORKS, Work, small

from escala.execution.lanes import lanes
from escala.execution.optimizer_kernel import recordable
from escala.execution.partial_sums import PartialSums
from escala.execution.peer_sums import PeerSums
from escala.execution.stepping import LANES, Arrived, step_by_part
from escala.execution.symmetric import symmetric
from escala.run.group import leave, meet
from escala.terms.trial import Seat

BLOCKS, REPEATS = 7, 20
STEP, GROUP, PEERS = "the optimiser's step alone", {"cuda": "through NCCL", "cpu": "through gloo"}, "between GPUs"
Sums = Callable[[], Iterator[Arrived]]


def times_of(work: Work, device: torch.device, rank: int, ways: int) -> dict[str, float]:
    """Seconds by what was done."""
    model = work.made().model().to(device)
    made = work.made().optimizer(model.parameters(), work.train())
    optimizer = recordable(made, work.best.optimizer_kernel, moving=False)
    weights, beside = list(model.parameters()), lanes(device, LANES)
    own = [torch.randn_like(weight) for weight in weights]

    def begin() -> None:
        for weight, gradient in zip(weights, own, strict=True):
            weight.grad = gradient

    def step() -> None:
        begin()
        optimizer.step()

    def added(sums: Sums) -> None:
        begin()
        for _ in sums():
            pass

    def both(sums: Sums) -> None:
        begin()
        step_by_part(optimizer, weights, sums(), beside)

    ways_to_add: dict[str, Sums] = {GROUP[device.type]: PartialSums(weights, rank)}
    if device.type == "cuda":
        ways_to_add[PEERS] = PeerSums(weights, rank, ways, partial(symmetric, device))
    found = {STEP: timed(step, device)}
    for name, sums in ways_to_add.items():
        found[f"sums {name}"] = timed(partial(added, sums), device)
        found[f"sums {name}, and the step"] = timed(partial(both, sums), device)
    return found


def timed(go: Callable[[], None], device: torch.device) -> float:
    if device.type != "cuda":
        go()
        began = time.perf_counter()
        go()
        return time.perf_counter() - began
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(3):
            go()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(REPEATS):
            go()
    graph.replay()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    found = list[float]()
    for _ in range(BLOCKS):
        torch.cuda.synchronize()
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        found.append(begin.elapsed_time(end) / 1e3 / REPEATS)
    return statistics.median(found)


def sit(rank: int, meeting: str, line: Connection, work: Work, seats: Sequence[Seat]) -> None:
    """The process of one seat."""
    device = torch.device(seats[rank].devices[0])
    meet(tuple(seats), rank, Path(meeting), 600.0, needs_group=True, captured=device.type == "cuda")
    torch.manual_seed(rank)
    line.send(times_of(work, device, rank, len(seats)))
    leave()


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=tuple(WORKS))
    parser.add_argument("--ways", type=int, default=2)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--out", type=Path, help="also write all times here, as JSON")
    given = parser.parse_args(words)
    kind = "cuda" if torch.cuda.is_available() and not given.smoke else "cpu"
    card = torch.cuda.get_device_name() if kind == "cuda" else "a processor"
    print(f"{given.ways} x {card}, torch {torch.__version__}")
    found = dict[str, dict[str, float]]()
    for name in given.only or WORKS:
        work = WORKS[name] if kind == "cuda" else small(name)
        devices = [f"{kind}:{rank}" if kind == "cuda" else kind for rank in range(given.ways)]
        seats = [Seat(rank, 0, (device,), (rank, rank + 1), 1) for rank, device in enumerate(devices)]
        by_seat = answers(sit, given.ways, work, seats)
        if failed := [one for one in by_seat if isinstance(one, str)]:
            print(f"a seat: {failed[0]}", file=sys.stderr)
            return 1
        # A step is as long as the slowest seat's.
        times = found[name] = {what: max(seat[what] for seat in by_seat) for what in by_seat[0]}
        size = sum(weight.nbytes for weight in work.made().model().parameters())
        print(f"\n{name}, {size / 1e6:,.1f} MB of gradients")
        for what, seconds in times.items():
            more = f"   {1e3 * (seconds - times[STEP]):+7.3f}" if what.endswith("the step") else ""
            print(f"{what:52}{1e3 * seconds:9.3f} ms{more}", flush=True)
        if given.out:
            given.out.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
