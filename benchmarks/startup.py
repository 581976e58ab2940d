"""How long people wait: start of a trial, `--help`, a report of 1,000 records, and the parent's memory.

    python benchmarks/startup.py

Prints each figure beside its limit; exits with 1 where one is above it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

RUNS = 5


def seconds(command: Sequence[str]) -> float:
    """Median wall time of a command over a few runs, after one that is not counted."""
    times = []
    for _ in range(RUNS + 1):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


EXPERIMENT = """
[workload]
name = "mlp"
data = ["fashion-mnist", "mnist", "synthetic"]
[train]
batch = 64
steps = 20
[[strategy]]
name = "single"
[measure]
repeats = 5
cooldown_s = 0
"""


def first_steps(folder: Path) -> tuple[float, float]:
    """Median seconds from the start of a seat's process to its first step, and the parent's peak memory, MB."""
    (folder / "e.toml").write_text(EXPERIMENT)
    code = (
        "import sys, resource, json, pathlib\n"
        "from escala.plan.read import read\n"
        "from escala.run import launch, campaign\n"
        "times = []\n"
        "real = launch.run_trial\n"
        "def noting(*given):\n"
        "    ended = real(*given)\n"
        "    times.append(max(result.first_step_s for result in ended.results))\n"
        "    return ended\n"
        "campaign.run_trial = noting\n"
        f"folder = pathlib.Path({str(folder)!r})\n"
        "asked = read(str(folder / 'e.toml'))\n"
        "campaign.run_campaign(asked, folder / 'c', command=['benchmark'], watch=lambda _: 0)\n"
        "assert 'torch' not in sys.modules\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024\n"
        "print(json.dumps([times, peak]))\n"
    )
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    times, peak = json.loads(told)
    return statistics.median(times), peak


def a_thousand_records(folder: Path) -> None:
    """The campaign's own records, over and over under other names, as a log of 1,000."""
    from escala.store import journal

    log = folder / "c" / "records.jsonl"
    kept = journal.read(log).records
    import msgspec

    lines = []
    for number in range(1000):
        record = kept[number % len(kept)]
        point = {"train.batch": number // 10}
        trial = msgspec.structs.replace(record.trial, id=f"t{number}", point=point, repeat=number % 10)
        lines.append(msgspec.structs.replace(record, id=f"t{number}", trial=trial))
    log.unlink()
    for line in lines:
        journal.append(log, line)


def main() -> int:
    python = [sys.executable, "-m", "escala"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first_step, peak = first_steps(folder)
        torch_alone = seconds([sys.executable, "-c", "import torch"])
        a_thousand_records(folder)
        rows: list[tuple[str, float, float, str]] = [
            ("start of a trial beyond import torch", first_step - torch_alone, 1.5, "s"),
            ("escala --help", seconds([*python, "--help"]), 0.3, "s"),
            ("escala report of 1,000 records", seconds([*python, "report", str(folder / "c")]), 1.0, "s"),
            ("peak memory of the campaign's parent", peak, 150.0, "MB"),
        ]
    for what, value, limit, unit in rows:
        print(f"{what:<40} {value:7.2f} {unit:<2} (at most {limit:g})")
    return int(any(value > limit for _, value, limit, _ in rows))


if __name__ == "__main__":
    raise SystemExit(main())
