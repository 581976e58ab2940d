"""How near the expected peak of memory comes to the measured one, trial by trial.

    escala run benchmarks/expected_memory.toml --out DIR
    python benchmarks/expected_memory.py DIR [OTHER ...]

With `--set train.epochs=1` rows are judged, too: a budget of steps, as in the file, ends without.

Prints both for every device of every trial that was done, and the trials of which nothing could be told. Exits with 1
where one differs by more than 15 % on an accelerator. Figures of `cpu` are the resident memory of whole processes and
are printed alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from escala.store import journal
from escala.terms.record import Record

LIMIT = 0.15
MIB = 2**20


class Pair(NamedTuple):
    """One device of one trial, bytes."""

    name: str
    device: str
    expected: int
    measured: int

    @property
    def apart(self) -> float:
        """By what share of the measured peak the expected one differs."""
        return self.expected / self.measured - 1


def pairs(record: Record) -> Iterator[Pair]:
    """The devices of which both are known; of cards the host's own memory does not count."""
    point = ", ".join(map(str, record.trial.point.values()))
    name = ", ".join(filter(None, (record.trial.label, point)))
    for device, expected in record.memory_estimate_bytes.items():
        if measured := record.memory_bytes.get(device):
            yield Pair(name, device, expected, measured)


def main() -> int:
    missed = 0
    for record in (one for name in sys.argv[1:] for one in journal.read(Path(name) / "records.jsonl").records):
        if record.outcome != "done":
            continue
        found = list(pairs(record))
        if not found:
            print(f"{record.trial.id}: nothing was expected")
        for one in found:
            told = f"{one.expected / MIB:,.0f} MiB expected, {one.measured / MIB:,.0f} MiB measured, {one.apart:+.1%}"
            over = one.device != "cpu" and abs(one.apart) > LIMIT
            missed += over
            print(f"{one.name}, {one.device}: {told}{'  MISSED' if over else ''}")
    return int(missed > 0)


if __name__ == "__main__":
    raise SystemExit(main())
