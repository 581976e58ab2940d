"""Which training rows are held out for validation, and which are left when there is a limit.

All classes are dealt out evenly: however many rows are taken from the front of the order, each class has its
share of them, to within one row; rows without a class are shuffled. The order depends on the labels alone, so
validation rows do not change with the limit, and a smaller limit takes some of a larger one's rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from escala.data.base import Request, Targets
from escala.terms.errors import EscalaError

_SEED = 0
_DEFAULT_SHARE = 1 / 12

Rows = NDArray[np.int64]
"""Numbers of training rows, ascending."""


@dataclass(frozen=True)
class Kept:
    """The training rows that an experiment uses, by purpose; no row is in both.

    `published`: the set has rows for validation of its own, and they are used.
    """

    train: Rows
    validation: Rows
    published: bool = False


def split_rows(targets: Targets, request: Request, *, own_validation: bool = False) -> Kept:
    """Deal the training rows out. `own_validation`: the set is published with rows for validation.

    Raises EscalaError CFG-RANGE where the share holds out no row at all or a whole class, or where the limit is
    above the rows that are left.
    """
    published = own_validation and request.validation is None
    held_out = 0 if published else _held_out(len(targets), request.validation)
    order = even_order(targets)
    validation, left = order[:held_out], order[held_out:]
    if targets.ndim == 1:
        lost = set(np.unique(targets[validation]).tolist()) - set(np.unique(targets[left]).tolist())
        if lost:
            raise EscalaError(
                "CFG-RANGE",
                "workload.validation",
                f"{_share(request.validation):g} leaves no training row of class {min(lost)}",
                next_step="lower it",
            )
    if request.limit is None:
        return Kept(np.sort(left), np.sort(validation), published)
    if not 1 <= request.limit <= len(left):
        raise EscalaError(
            "CFG-RANGE",
            "workload.limit",
            f"{request.limit:,} rows are asked for",
            expected=f"1 to {len(left):,} training rows of {request.name}; {held_out:,} are held out for validation",
            next_step="lower it, or leave it out to use them all",
        )
    return Kept(np.sort(left[: request.limit]), np.sort(validation), published)


def _share(asked: float | None) -> float:
    return _DEFAULT_SHARE if asked is None else asked


def _held_out(rows: int, asked: float | None) -> int:
    share = _share(asked)
    held_out = round(rows * share) if 0 <= share < 1 else 0
    if not 0 <= share < 1 or (asked and held_out == 0):
        raise EscalaError(
            "CFG-RANGE",
            "workload.validation",
            f"{share:g} of {rows:,} training rows is no number of rows to hold out",
            expected="a share from 0 up to, not including, 1",
            next_step="give a share of at least one row, or 0 for no validation",
        )
    return held_out


def even_order(targets: Targets, seed: int = _SEED) -> Rows:
    """All row numbers, so that each class is spread evenly over the order, at random within it."""
    numbers = np.random.Generator(np.random.PCG64(seed)).random(len(targets))
    if targets.ndim > 1:
        return np.argsort(numbers, kind="stable")
    by_class = np.lexsort((numbers, targets))
    counts = np.bincount(targets)[targets[by_class]]
    firsts = np.searchsorted(targets[by_class], targets[by_class])
    place = (np.arange(len(targets)) - firsts + 0.5) / counts
    # Rows of different classes often share a place; the random number then decides, so no class comes first.
    order: Rows = by_class[np.lexsort((numbers[by_class], place))]
    return order
