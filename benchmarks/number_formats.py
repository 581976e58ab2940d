"""Does the number format show in the score that is reached on generated data?

    python benchmarks/number_formats.py [--only synthetic-fish@28x28 ...] [--seeds 3]

Generated sets train networks on a processor, once with weights in 32 bits and once with weights that are rounded to
bfloat16 after every step: its 8 bits lose what moves a weight by less than a 512th of it. escala's own bf16 keeps
weights in 32 bits for that very reason; the question is whether the data would show a format too narrow. Prints the
scores of both, medians and ranges over seeds that set initial weights and order, and exits with 1 where the narrow
one is not worse for every seed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from escala.data.base import Request
from escala.data.prepared import cache_folder, load, prepare
from escala.execution.feed import Rows, evaluation_batches, rows_of
from escala.execution.order import order_of
from escala.terms.experiment import TrainSpec
from escala.workloads import workload
from escala.workloads.base import Workload

_CPU = torch.device("cpu")


@dataclass(frozen=True)
class Case:
    """Which network learns which data, and by which recipe."""

    network: str
    data: str
    train: TrainSpec
    options: Mapping[str, Any] = field(default_factory=dict)


def _recipe(lr: float, epochs: int) -> TrainSpec:
    return TrainSpec(batch=32, epochs=epochs, optimizer="adamw", lr=lr)


_SMALL_LM = {"length": 32, "width": 64, "layers": 2, "heads": 2, "ff": 128, "vocabulary": 1000, "dropout": 0.0}
CASES = (
    Case("mlp", "synthetic:6000+2000", _recipe(1e-4, 4), {"dropout": 0.0}),
    Case("cnn-medium", "synthetic-cifar10:1500+1000", _recipe(1e-4, 3)),
    Case("cnn-small", "synthetic-fish@28x28:1800+900", _recipe(1e-4, 16), {"dropout": 0.0}),
    Case("transformer-lm", "synthetic-wikitext:100+40", _recipe(3e-4, 2), _SMALL_LM),
)


def score(work: Workload, model: torch.nn.Module, rows: Rows) -> float:
    """The first metric of all rows."""
    model.eval()
    total = counted = 0.0
    with torch.no_grad():
        for inputs, targets, count in evaluation_batches(rows, 0, 1):
            total += rows.score(model(inputs), targets).double().reshape(-1)[0].item()
            counted += len(targets) if work.metrics[0].over == "rows" else count
    return work.metrics[0].of_mean(total / counted)


def reached(case: Case, folder: Path, kept: torch.dtype, seed: int) -> float:
    """The score after training in 32 bits with weights that are kept in `kept` between steps."""
    work = workload(case.network, dict(case.options))
    torch.manual_seed(seed)
    model = work.model()
    splits = load(folder)
    rows, judged = (rows_of(splits[name], _CPU, work, torch.float32) for name in ("train", "test"))
    optimizer = work.optimizer(model.parameters(), case.train)
    for epoch in range(case.train.epochs or 1):
        model.train()
        for numbers in torch.from_numpy(order_of(seed, epoch, len(rows))).split(case.train.batch):
            inputs, targets = rows.convert(rows.raw[numbers], rows.targets[numbers])
            optimizer.zero_grad()
            (work.loss(model(inputs), targets) / rows.count(rows.targets[numbers])).backward()
            optimizer.step()
            with torch.no_grad():
                for weight in model.parameters():
                    weight.copy_(weight.to(kept))
    return score(work, model, judged)


def compared(case: Case, seeds: int) -> bool:
    """Prints both scores; whether the narrow format is worse for every seed."""
    work = workload(case.network, dict(case.options))
    request = Request(case.data, validation=0.0, form=work.form())
    prepared = prepare(request, cache_folder(os.environ), os.environ, lambda _: None)
    metric = work.metrics[0]
    found = {
        name: [reached(case, prepared.folder, dtype, seed) for seed in range(seeds)]
        for name, dtype in (("fp32", torch.float32), ("weights in bf16", torch.bfloat16))
    }
    sign = 1 if metric.better == "higher" else -1
    worse = all(sign * (wide - narrow) > 0 for wide, narrow in zip(*found.values(), strict=True))
    told = ", ".join(
        f"{name} {statistics.median(values):.4g} ({min(values):.4g} to {max(values):.4g})"
        for name, values in found.items()
    )
    print(f"{case.data}, {case.network}, {metric.name}: {told}: {'shows' if worse else 'DOES NOT SHOW'}", flush=True)
    return worse


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=[case.data.partition(":")[0] for case in CASES])
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args(words)
    chosen = [case for case in CASES if not given.only or case.data.partition(":")[0] in given.only]
    # Every case is tried, also after one that shows nothing.
    verdicts = [compared(case, given.seeds) for case in chosen]
    return int(not all(verdicts))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
