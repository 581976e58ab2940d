"""How long a report takes: reading 1,000 records of 100 rows, summarising, judging, each writer, and the page.

    python benchmarks/report.py [RECORDS [ROWS [EPOCHS]]]

The records carry 100 epochs, 20 blocks and 200 losses each. Prints the page as `escala report --format html` writes
it, seconds and peak memory, with the renderer kept from before and without; how soon it can be used in a headless
Chromium, if Playwright and one are here; then the best of three of every station, in milliseconds. Exits with 1 where
a limit is missed.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
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
from escala.store.campaign import create_or_open, open_campaign
from escala.terms.experiment import ExecutionSpec, Experiment, MeasureSpec, StrategySpec, TrainSpec, WorkloadSpec
from escala.terms.host import Host
from escala.terms.record import DataUse, Epoch, Phases, Record, Score
from escala.terms.trial import Seat, StrategyUse, Trial

T = TypeVar("T")

HOST = Host("Test CPU", 2, 8 * 2**30, "Linux", software={"torch": "2.13.0"})
DATA = DataUse("fashion-mnist", "real", "/data", "d", {"train": 55_000, "validation": 5_000, "test": 10_000}, 10)
LABELS = ("single", "ddp x1", "ddp x2", "ddp x4")
BLOCKS, LOSSES = 20, 200
CHROMIUM = Path("/usr/bin/chromium")

MOST_S, MOST_BYTES, MOST_PAGE_BYTES, MOST_WAIT_S = 5.0, 500e6, 3e6, 2.0


def record(row: int, repeat: int, epochs: int, rng: random.Random) -> Record:
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
        train=TrainSpec(batch=batch, epochs=epochs),
        batch=batch,
        seats=seats,
        seed=repeat,
        repeat=repeat,
        point={"train.batch": batch},
    )
    scores = [0.9 - 0.4 / (1 + place) + rng.gauss(0, 0.002) for place in range(epochs)]
    return Record(
        id=trial.id,
        trial=trial,
        outcome="done",
        host=HOST,
        setup_s=3.0,
        phases=Phases(train_s, 0.5, 0.4),
        epochs=tuple(Epoch(train_s / epochs, 0.5, f"o{n}", 0.5 / epochs, score) for n, score in enumerate(scores)),
        block_seconds=tuple(rng.gauss(0.25, 0.01) for _ in range(BLOCKS)),
        steps_per_block=40,
        steps=epochs * -(-55_000 // batch),
        samples_per_second=55_000 * epochs / train_s,
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


def kept(name: str, value: float, most: float, unit: str) -> bool:
    """Print a figure beside its limit; returns whether it keeps it."""
    print(f"{name:34} {value:8.2f} {unit}, at most {most:g}{'' if value <= most else '   MISSED'}")
    return value <= most


def campaign(folder: Path, made: list[Record], rows: int, epochs: int) -> None:
    """A folder as a run leaves it."""
    strategies = tuple(
        StrategySpec(label.split()[0], ways=1 if label == "single" else int(label[-1])) for label in LABELS
    )
    batches = sorted({16 * (1 + row // len(LABELS)) for row in range(rows)})
    experiment = Experiment(
        workload=WorkloadSpec("mlp"),
        train=TrainSpec(epochs=epochs),
        strategy=strategies,
        measure=MeasureSpec(repeats=-(-len(made) // rows)),
        sweep={"train.batch": list(batches)},
        title="A thousand trials",
    )
    log = create_or_open(folder, experiment, "", (), ("escala", "run")).records
    for one in made:
        journal.append(log, one)


def page(folder: Path, out: Path, cache: Path) -> tuple[float, float]:
    """Seconds of `escala report --format html`, its process' start included, and the peak of its memory in bytes."""
    command = [sys.executable, "-m", "escala", "report", str(folder), "--format", "html", "--out", str(out)]
    began = time.perf_counter()
    subprocess.run(command, check=True, env={**os.environ, "ESCALA_CACHE": str(cache)})
    spent = time.perf_counter() - began
    return spent, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024.0


def wait_s(file: Path) -> float | None:
    """Seconds from opening the page until its table was sorted by a click; None, and why, without a browser."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        print("no Playwright here: how soon the page can be used was not measured")
        return None
    if not CHROMIUM.exists():
        print(f"no {CHROMIUM} here: how soon the page can be used was not measured")
        return None
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        tab = browser.new_page()
        began = time.perf_counter()
        tab.goto(file.as_uri(), wait_until="commit")
        tab.locator("thead button").first.click()
        tab.locator("th[aria-sort]").first.wait_for()
        spent = time.perf_counter() - began
        browser.close()
    return spent


def main() -> None:
    """Write the records, then time each station on the way to a report, and the page as a person gets it."""
    count, rows, epochs = (
        int(sys.argv[place]) if len(sys.argv) > place else usual for place, usual in ((1, 1000), (2, 100), (3, 100))
    )
    rng = random.Random(0)  # noqa: S311 - figures, no secret
    made = [record(number % rows, number // rows, epochs, rng) for number in range(count)]
    rng.shuffle(made)
    with tempfile.TemporaryDirectory() as place:
        folder, out, cache = Path(place, "campaign"), Path(place, "report.html"), Path(place, "cache")
        campaign(folder, made, rows, epochs)
        # Before this process holds anything large, of which its children's peaks would be a part.
        cold_s, _ = page(folder, out, cache)
        warm_s, peak = min(page(folder, out, cache) for _ in range(3))
        print(f"{'page, renderer not kept yet':34} {cold_s:8.2f} s")
        held = [
            kept("page", warm_s, MOST_S, "s"),
            kept("peak memory", peak / 1e6, MOST_BYTES / 1e6, "MB"),
            kept("size of the page", out.stat().st_size / 1e6, MOST_PAGE_BYTES / 1e6, "MB"),
        ]
        if (waited := wait_s(out)) is not None:
            held.append(kept("until its table was sorted", waited, MOST_WAIT_S, "s"))
        log = open_campaign(folder).records
        read, _ = timed("read", lambda: journal.read(log).records)
    summaries, total = timed("summarise", lambda: summarise(read, "single"))
    verdict, spent = timed("judge", lambda: judge(summaries))
    total += spent
    for name, write in WRITERS.items():
        text, spent = timed(name, partial(write, summaries, verdict))
        total += spent
        assert text
    print(f"{'all but read':12} {1000 * total:8.1f} ms for {count} records in {len(summaries)} rows")
    raise SystemExit(0 if all(held) else 1)


if __name__ == "__main__":
    main()
