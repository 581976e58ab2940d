"""Shares of a speed-up: what each factor brings, over every order in which the factors can be added one by one.

With all subsets measured that is Shapley's value (L. S. Shapley, A value for n-person games, 1953). With fewer it is
the same mean over those orders whose every step was measured, down to the single order of a ladder.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import combinations
from math import comb

Subset = frozenset[str]
Weights = dict[Subset, float]
"""What a share is made of: a weighted sum over the values of subsets."""


def share_weights(names: Sequence[str], measured: Collection[Subset]) -> tuple[int, dict[str, Weights]]:
    """How many orders were measured from the first step to the last, and each factor's weights over the subsets.

    No order: no weights. `measured` are subsets of `names`; with all of them there are n! orders.
    """
    known = set(measured)
    rising = sorted(known, key=len)
    to, onward = dict.fromkeys(known, 0), dict.fromkeys(known, 0)
    none, whole = frozenset[str](), frozenset(names)
    if none not in known or whole not in known:
        return 0, {}
    to[none] = onward[whole] = 1
    for subset in rising:
        to[subset] += sum(to.get(subset - {name}, 0) for name in subset)
    for subset in reversed(rising):
        onward[subset] += sum(onward.get(subset | {name}, 0) for name in whole - subset)
    orders = to[whole]
    if not orders:
        return 0, {}
    found: dict[str, Weights] = {}
    for name in names:
        weights: Weights = {}
        for subset in known:
            above = subset | {name}
            if name not in subset and above in known and (passing := to[subset] * onward[above]):
                weights[above] = weights.get(above, 0.0) + passing / orders
                weights[subset] = weights.get(subset, 0.0) - passing / orders
        found[name] = weights
    return orders, found


def interaction_weights(names: Sequence[str], one: str, other: str) -> Weights:
    """Weights of what two factors bring together beyond what each brings alone; all subsets must be measured.

    The Shapley interaction index (M. Grabisch and M. Roubens, 1999): 0 where the two do not touch each other.
    """
    rest = [name for name in names if name not in (one, other)]
    found: Weights = {}
    for size in range(len(rest) + 1):
        weight = 1 / ((len(names) - 1) * comb(len(rest), size))
        for some in combinations(rest, size):
            subset = frozenset(some)
            for with_these, sign in (({one, other}, 1), ({one}, -1), ({other}, -1), (set[str](), 1)):
                found[subset | with_these] = found.get(subset | with_these, 0.0) + sign * weight
    return found
