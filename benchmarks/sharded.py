"""Do sharded and staged networks hold as little, and train as fast, as they should? Judges campaigns.

    escala run benchmarks/sharded.toml --out DIR
    escala run benchmarks/pipeline.toml --out OTHER
    python benchmarks/sharded.py DIR OTHER

For each network: what `fsdp` keeps between steps on a device over what `ddp` keeps, how near expected peaks of memory
come, the rate of the best `fsdp` row over that of the best `ddp` row, and of the best `pipeline` row over as many
times that of one device. Rates are medians over repeats. Exits with 1 where something that must be reached is missed.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

from expected_memory import LIMIT, pairs

from escala.store import journal
from escala.terms.record import Record

MUST = {"400M": 0.7, "1.3B": 0.85}
MUST_PIPELINE = 0.75
MOST_STATE = 1.15


def rates(records: Sequence[Record], name: str) -> dict[str, float]:
    """Samples a second by row of a strategy, medians over its repeats."""
    found = dict[str, list[float]]()
    for record in records:
        if record.trial.strategy.name == name and record.samples_per_second is not None:
            found.setdefault(record.trial.label, []).append(record.samples_per_second)
    return {label: statistics.median(values) for label, values in found.items()}


def best(records: Sequence[Record], name: str) -> tuple[str, float]:
    """The fastest row of a strategy; none: no row and 0."""
    return max(rates(records, name).items(), key=lambda pair: pair[1], default=("no row", 0.0))


def state(records: Sequence[Record], name: str) -> float:
    """Most bytes that a device keeps between steps."""
    readings = (one for record in records if record.trial.strategy.name == name for one in record.readings)
    return max((one.value or 0.0 for one in readings if one.what == "state memory"), default=0.0)


def kept(told: str, value: float, bound: float, *, least: bool) -> bool:
    """Print a figure beside its bound; returns whether it keeps it."""
    sound = value >= bound if least else value <= bound
    print(f"  {told}: {value:.3f}, {'at least' if least else 'at most'} {bound:.3f}{'' if sound else '   MISSED'}")
    return sound


def judged(case: str, records: Sequence[Record]) -> list[bool]:
    """Each line of one network."""
    print(case)
    ddp, fsdp, pipeline = (best(records, name) for name in ("ddp", "fsdp", "pipeline"))
    one = best(records, "single")
    for label, rate in sorted({**rates(records, "ddp"), **rates(records, "fsdp")}.items(), key=lambda pair: -pair[1]):
        print(f"  {label}: {rate:.2f} samples/s")
    found = list[bool]()
    if (whole := state(records, "ddp")) and (part := state(records, "fsdp")):
        ways = max(record.trial.strategy.ways for record in records if record.trial.strategy.name == "fsdp")
        found.append(kept("state of fsdp over ddp", part / whole, MOST_STATE / ways, least=False))
    for compiled in (False, True):
        some = [record for record in records if record.trial.execution.compile is compiled]
        apart = [pair.apart for record in some for pair in pairs(record) if pair.device != "cpu"]
        # What the compiler saves is not known before the run, so of compiled rows the peak is only bounded.
        if apart and compiled:
            found.append(
                kept("compiled: peaks fall short of the expected by, at worst", min(apart), -LIMIT, least=True)
            )
        elif apart:
            found.append(kept("expected peaks differ by", max(map(abs, apart)), LIMIT, least=False))
    if ddp[1] and fsdp[1]:
        found.append(kept(f"{fsdp[0]} over {ddp[0]}", fsdp[1] / ddp[1], MUST[case], least=True))
    if one[1] and pipeline[1]:
        ways = max(record.trial.strategy.ways for record in records if record.trial.strategy.name == "pipeline")
        share = pipeline[1] / (ways * one[1])
        found.append(kept(f"{pipeline[0]} over {ways} times {one[0]}", share, MUST_PIPELINE, least=True))
    return found


def main() -> int:
    found = [one for folder in sys.argv[1:] for one in journal.read(Path(folder) / "records.jsonl").records]
    records = [one for one in found if one.outcome == "done"]
    cases = dict.fromkeys(str(one.trial.point["case"]) for one in records)
    held = [line for case in cases for line in judged(case, [r for r in records if r.trial.point["case"] == case])]
    return int(not held or not all(held))


if __name__ == "__main__":
    raise SystemExit(main())
