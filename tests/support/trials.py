"""A trial of which only what a test is about is given."""

from __future__ import annotations

from typing import Any

from escala.strategies import strategy
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Device, Host
from escala.terms.trial import StrategyUse, Trial

HOST = Host(
    cpu="c",
    cores=4,
    memory_bytes=1,
    system="s",
    devices=tuple(Device("cuda", number, "g", 1) for number in range(4)),
)
"""Four cores and four cards."""


def trial_of(use: StrategyUse, **more: Any) -> Trial:
    """64 rows a step, on the seats that the strategy takes on `HOST`."""
    usual = {
        "id": "x",
        "label": "x",
        "workload": "mlp",
        "options": {},
        "data": "d",
        "validation": None,
        "limit": None,
        "strategy": use,
        "execution": ExecutionSpec(),
        "train": TrainSpec(steps=1, batch=64),
        "batch": 64,
        "seed": 0,
        "repeat": 0,
    }
    seats = more.get("seats") or strategy(use).seats(HOST, 64)
    return Trial(**(usual | more | {"seats": seats}))
