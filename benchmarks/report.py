"""How long a report takes: reading 1,000 records of 100 rows, summarising, judging, and each writer.

    python benchmarks/report.py [RECORDS [ROWS]]

The records carry 20 blocks and 200 losses each. Prints the best of three, in milliseconds; aim: 300 ms without
the reading.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from escala.analyse.summary import summarise
from escala.analyse.verdict import judge
from escala.report import WRITERS
from escala.store import journal
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Host
from escala.terms.record import DataUse, Epoch, Phases, Record, Score
from escala.terms.trial import Seat, StrategyUse, Trial

T = TypeVar("T")

HOST = Host("Test CPU", 2, 8 * 2**30, "Linux", software={"torch": "2.13.0"})
DATA = DataUse("fashion-mnist", "real", "/data", "d", {"train": 55_000, "validation": 5_000, "test": 10_000}, 10)
LABELS = ("single", "ddp x1", "ddp x2", "ddp x4")
EPOCHS, BLOCKS, LOSSES = 3, 20, 200


def record(row: int, repeat: int, rng: random.Random) -> Record:
    """One small record; four labels make a sweep point."""
    label, batch = LABELS[row % len(LABELS)], 16 * (1 + row // len(LABELS))
    ways = 1 if label == "single" else int(label[-1])
    cuts = [batch * way // ways for way in range(ways + 1)]
    seats = tuple(Seat(way, 0, ("cpu",), (cuts[way], cuts[way + 1]), 1) for way in range(ways))
    train_s = rng.gauss(10, 0.3)
    trial = Trial(
        id=f"{label}-{batch}-r{repeat}",
        label=label,
        workload="mlp",
        options={"dropout": 0.2},
        data="fashion-mnist",
        validation=1 / 12,
        limit=None,
        strategy=StrategyUse(label.split()[0], ways, "cpu"),
        execution=ExecutionSpec(),
        train=TrainSpec(batch=batch, epochs=EPOCHS),
        batch=batch,
        seats=seats,
        seed=repeat,
        repeat=repeat,
        point={"train.batch": batch},
    )
    return Record(
        id=trial.id,
        trial=trial,
        outcome="done",
        host=HOST,
        setup_s=3.0,
        phases=Phases(train_s, 0.5, 0.4),
        epochs=tuple(Epoch(train_s / EPOCHS, 0.5, f"o{n}", 0.16, 0.86) for n in range(EPOCHS)),
        block_seconds=tuple(rng.gauss(0.25, 0.01) for _ in range(BLOCKS)),
        steps_per_block=40,
        steps=EPOCHS * -(-55_000 // batch),
        samples_per_second=165_000 / train_s,
        score=Score("accuracy", rng.gauss(0.87, 0.002), 10_000),
        losses=tuple(rng.random() for _ in range(LOSSES)),
        parameters=669_706,
        memory_bytes={"cpu": 300 * 2**20},
        data=DATA,
        wall_s=15.0,
    )


def timed(name: str, work: Callable[[], T]) -> tuple[T, float]:
    """Print the best of three, in milliseconds; returns the last result and that time in seconds."""
    best = float("inf")
    for _ in range(3):
        began = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - began)
    print(f"{name:12} {1000 * best:8.1f} ms")
    return result, best


def main() -> None:
    """Write the records, then time each station on the way to a report."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    rows = int(sys.argv[2]) if len(sys.argv) > 2 else 100
    rng = random.Random(0)  # noqa: S311 - figures, no secret
    made = [record(number % rows, number // rows, rng) for number in range(count)]
    rng.shuffle(made)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "records.jsonl"
        for one in made:
            journal.append(log, one)
        read, _ = timed("read", lambda: journal.read(log).records)
    summaries, total = timed("summarise", lambda: summarise(read, "single"))
    verdict, spent = timed("judge", lambda: judge(summaries))
    total += spent
    for name, write in WRITERS.items():
        text, spent = timed(name, partial(write, summaries, verdict))
        total += spent
        assert text
    print(f"{'all but read':12} {1000 * total:8.1f} ms for {count} records in {len(summaries)} rows")


if __name__ == "__main__":
    main()
