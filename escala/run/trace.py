"""Samples as the arrays of a power trace."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from escala.meters.base import Sample
from escala.meters.sampler import Samples

COLUMNS: dict[str, Callable[[Sample], float | None]] = {
    "watts": lambda sample: sample.watts,
    "joules": lambda sample: sample.joules,
    "utilisation": lambda sample: sample.utilisation,
    "clock_mhz": lambda sample: sample.clock_mhz,
    "temperature_c": lambda sample: sample.temperature_c,
    "throttled": lambda sample: None if sample.throttled is None else float(sample.throttled),
    "memory_bytes": lambda sample: sample.memory_bytes,
}


def arrays_of(samples: Samples) -> dict[str, NDArray[np.floating]]:
    """`seconds` from the first sample on, shape (n,), and `WHERE/COLUMN` for all that a channel told, shape (n,).

    Joules begin at 0. Where a channel has a counter only, its watts are the counter's slope up to each sample.
    """
    seconds = np.array(samples.seconds) - samples.seconds[0]
    found: dict[str, NDArray[np.floating]] = {"seconds": seconds}
    for place, channel in enumerate(samples.channels):
        column = [row[place] for row in samples.rows]
        told = {name: _numbers([of(sample) for sample in column]) for name, of in COLUMNS.items()}
        told["joules"] -= _first(told["joules"])
        if np.isnan(told["watts"]).all():
            told["watts"][1:] = np.diff(told["joules"]) / np.maximum(np.diff(seconds), 1e-9)
        # Seven digits are more than any meter has.
        for name, values in told.items():
            if not np.isnan(values).all():
                found[f"{channel.where}/{name}"] = values.astype(np.float32)
    return found


def _numbers(values: list[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _first(values: NDArray[np.float64]) -> float:
    known = values[~np.isnan(values)]
    return float(known[0]) if len(known) else 0.0
