"""How far the loss curves of a campaign's strategies lie apart, seed by seed.

    python benchmarks/agreement.py DIR

For every trial with another of the same work and seed under the baseline: the largest relative difference of the loss
over the first 200 steps and over the whole run. Exits with 1 where it is above 1e-5 over the first 200 steps, or, in
float64, above 1e-8 over the whole run. Says nothing of networks with dropout, whose seats draw their own numbers.
"""

from __future__ import annotations

import sys
from pathlib import Path

from escala.store import journal
from escala.terms.record import Record

FIRST = 200


def same_work(one: Record, other: Record) -> bool:
    """Whether both follow one seed through the same work, so that their curves may be compared."""
    mine, yours = one.trial, other.trial
    return (mine.point, mine.seed, mine.train, mine.execution, mine.workload, mine.options) == (
        yours.point,
        yours.seed,
        yours.train,
        yours.execution,
        yours.workload,
        yours.options,
    )


def apart(one: Record, other: Record) -> list[float]:
    """Relative difference of the losses, step by step."""
    return [abs(a - b) / abs(a) for a, b in zip(one.losses, other.losses, strict=True)]


def main() -> int:
    records = [
        record for record in journal.read(Path(sys.argv[1]) / "records.jsonl").records if record.outcome == "done"
    ]
    missed = False
    for single in (record for record in records if record.trial.strategy.name == "single"):
        for other in records:
            if other.trial.strategy.name == "single" or not same_work(single, other):
                continue
            difference = apart(single, other)
            first, whole = max(difference[:FIRST]), max(difference)
            precision = single.trial.execution.precision
            print(
                f"{other.trial.label}, {precision}, seed {single.trial.seed}: {first:.1e} over {FIRST} steps, "
                f"{whole:.1e} over {len(difference)} steps"
            )
            missed |= first > 1e-5 or (precision == "fp64" and whole > 1e-8)
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
