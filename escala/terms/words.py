"""The nearest name to a mistaken one, for the end of an error line."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from escala.terms.errors import EscalaError

OTHER_NAMES = {
    # keys
    "batch": ("batch_size", "global_batch"),
    "data": ("dataset",),
    "device": ("accelerator",),
    "epochs": ("epoch", "max_epochs", "num_epochs"),
    "lr": ("learning_rate",),
    "name": ("kind", "model", "type"),
    "optimizer": ("optim",),
    "precision": ("amp", "dtype"),
    "repeats": ("runs", "trials"),
    "seed": ("random_seed",),
    "steps": ("iterations", "max_steps"),
    "strategy": ("strategies",),
    "train": ("training",),
    "validation": ("val_split",),
    "ways": ("devices", "gpus", "processes", "world_size"),
    "weight_decay": ("decay", "wd"),
    "workload": ("model",),
    # options of workloads
    "classes": ("num_classes", "num_labels"),
    "heads": ("num_heads", "nhead"),
    "layers": ("depth", "num_layers"),
    "length": ("block_size", "max_length", "sequence_length"),
    "vocabulary": ("vocab_size",),
    "width": ("d_model", "hidden_size"),
    # values
    "bf16": ("bfloat16",),
    "cuda": ("gpu", "nvidia"),
    "fp32": ("float32", "single"),
    "fp64": ("double", "float64"),
}
"""A name -> what other tools call it. Used together with likeness of spelling."""


def nearest(word: str, names: Iterable[str]) -> str:
    """The one of `names` that `word` was likely meant to be, by spelling or by what others call it; or ""."""
    known = {name.lower(): name for name in names}
    others = {other: name for name in known.values() for other in OTHER_NAMES.get(name, ())}
    pool = others | known
    found = difflib.get_close_matches(word.lower(), pool, n=1)
    return pool[found[0]] if found else ""


def did_you_mean(near: str) -> str:
    """The question that ends an error line, if there is a near name."""
    return f"did you mean {near}?" if near else ""


def not_in_table(where: str, noun: str, name: str, names: Collection[str], *, own: bool = False) -> EscalaError:
    """CFG-VALUE for a `name` that a table does not have; `own`: a person's `module:factory` would do as well."""
    return EscalaError(
        "CFG-VALUE",
        where,
        f"there is no {noun} {name!r}",
        expected=f"one of {', '.join(names)}" + (", or module:factory" if own else ""),
        next_step=did_you_mean(nearest(name, names)),
    )
