"""The learning rate of each optimiser step. Plain arithmetic: also plans and reports use it.

Counted in optimiser steps of the whole training, whatever the number of seats: a schedule built from one process's
own number of batches ends too late by the number of processes.
"""

from __future__ import annotations

import math

from escala.terms.experiment import TrainSpec

ONE_CYCLE_RISE = 0.3
"""Share of the steps over which `one-cycle` rises (Smith and Topin, arXiv:1708.07120, and PyTorch's OneCycleLR)."""
ONE_CYCLE_START = 1 / 25
"""Where `one-cycle` begins, as a share of the full rate (PyTorch's default)."""


def full_rate(train: TrainSpec) -> float:
    """The learning rate for this batch, before any schedule.

    `linear`: in proportion to the batch (Goyal et al., arXiv:1706.02677); `sqrt`: to its square root (Krizhevsky,
    arXiv:1404.5997).
    """
    if train.lr_rule == "none" or train.base_batch is None:
        return train.lr
    growth = train.batch / train.base_batch
    return train.lr * (growth if train.lr_rule == "linear" else math.sqrt(growth))


def is_constant(train: TrainSpec) -> bool:
    """Whether every step has the same rate."""
    return train.schedule == "constant" and train.warmup_steps == 0


def total_steps(train: TrainSpec, rows: int) -> int:
    """Optimiser steps of the whole budget on `rows` training rows."""
    return train.steps if train.steps is not None else (train.epochs or 0) * -(-rows // train.batch)


def rate(train: TrainSpec, step: int, total: int) -> float:
    """The learning rate of optimiser step `step` (from 0) of `total`.

    Warm-up rises linearly and reaches the full rate with its last step. `cosine` falls to 0 after the last step
    (Loshchilov and Hutter, arXiv:1608.03983, without restarts); steps beyond `total` keep the last step's rate.
    """
    full = full_rate(train)
    warm = train.warmup_steps
    if step < warm:
        return full * (step + 1) / warm
    past, left = max(0, min(step, total - 1) - warm), max(1, total - warm)
    if train.schedule == "cosine":
        return full * _half_wave(past / left)
    if train.schedule == "step" and train.decay_steps is not None:
        return full * float(train.decay_factor ** (past // train.decay_steps))
    if train.schedule == "one-cycle":
        rise = max(1, round(ONE_CYCLE_RISE * left))
        if past < rise:
            return full * (ONE_CYCLE_START + (1 - ONE_CYCLE_START) * (1 - _half_wave((past + 1) / rise)))
        return full * _half_wave((past - rise) / max(1, left - rise))
    return full


def landmarks(train: TrainSpec, total: int) -> dict[str, float]:
    """Rates that tell a schedule: of the first step, of the one that ends the warm-up, and of the last."""
    found = {"first": rate(train, 0, total), "last": rate(train, max(0, total - 1), total)}
    if train.warmup_steps:
        found["end of warm-up"] = rate(train, train.warmup_steps - 1, total)
    return found


def _half_wave(share: float) -> float:
    """1 at 0, 0 at 1, along half a cosine."""
    return 0.5 * (1 + math.cos(math.pi * min(1.0, max(0.0, share))))
