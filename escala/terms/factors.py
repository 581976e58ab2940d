"""In what two rows differ, gathered into the factors that a speed-up is taken apart by.

A row is a flat table here: `strategy.ways`, `execution.precision`, `train.batch`, ... -> value.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

Settings = Mapping[str, Any]
Factors = dict[str, tuple[str, ...]]
"""A factor's name -> the keys that belong to it and differ."""

DEVICES = "devices"
_EXCHANGE = ("bucket_mb", "compression", "static_graph", "overlap", "transport", "unused", "pin", "threads")
"""Keys of the execution that only mean something for one way of sitting on the devices."""
_GROUPS: dict[str, tuple[str, ...]] = {
    DEVICES: tuple(f"execution.{key}" for key in _EXCHANGE),
    "loop": ("peer",),
    "precision": ("execution.precision",),
    "batch": (
        *("train.batch", "execution.microbatch", "train.lr", "train.lr_rule", "train.base_batch"),
        *("train.schedule", "train.warmup_steps", "train.decay_steps", "train.decay_factor"),
    ),
    "optimizer": ("train.optimizer", "train.momentum", "train.weight_decay", "train.clip_norm"),
    "optimizer kernel": ("execution.optimizer_kernel",),
    "dropout kernel": ("execution.dropout_kernel",),
    "normalisation": ("execution.batchnorm", "execution.random"),
    "layout": ("execution.memory_format",),
    "feed": ("execution.feed", "execution.workers"),
    "compile": ("execution.compile",),
}
"""Keys that go together; one that stands nowhere here is a factor of its own."""
SAME = ("train.epochs", "train.steps", "train.until", "train.seed")
"""What must be alike: no speed-up can be had between other amounts of work."""


def factors(before: Settings, after: Settings) -> Factors:
    """The factors in which two rows differ, in the order of the table, then those that stand nowhere in it."""
    different = [key for key in dict.fromkeys([*before, *after]) if before.get(key) != after.get(key)]
    found: dict[str, list[str]] = {}
    for key in different:
        if key not in SAME:
            found.setdefault(_group(key), []).append(key)
    order = [*(group for group in _GROUPS if group in found), *(group for group in found if group not in _GROUPS)]
    return {_name(group, found[group]): tuple(found[group]) for group in order}


def mixed(before: Settings, after: Settings, taken: Set[str], of: Factors) -> dict[str, Any]:
    """The row of `before` with the factors in `taken` as in `after`."""
    keys = {key for name in taken for key in of[name]}
    return {key: after.get(key) if key in keys else before.get(key) for key in dict.fromkeys([*before, *after])}


def taken_by(row: Settings, before: Settings, after: Settings, of: Factors) -> frozenset[str] | None:
    """Which factors `row` has as in `after`, all others as in `before`; None where it is no such mixture."""
    taken = frozenset(name for name, keys in of.items() if all(row.get(key) == after.get(key) for key in keys))
    wanted = mixed(before, after, taken, of)
    keys = wanted.keys() | row.keys()
    return taken if all(row.get(key) == wanted.get(key) for key in keys) else None


def _group(key: str) -> str:
    if key.startswith("strategy."):
        return DEVICES
    return next((group for group, keys in _GROUPS.items() if key in keys), key.split(".")[-1].replace("_", " "))


def _name(group: str, keys: list[str]) -> str:
    # A batch and the rate that is meant for it are one choice; without another batch it is the rate alone.
    return "rate" if group == "batch" and not {"train.batch", "execution.microbatch"} & set(keys) else group
