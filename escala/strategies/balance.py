"""Where a row of parts is cut so that stages take about equally long. No torch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from escala.terms.errors import Unfit


def balanced(costs: Sequence[float], stages: int) -> tuple[int, ...]:
    """How many consecutive parts each stage gets, one at least, so that the dearest stage costs least.

    Of several such cuts the one with the least sum of squares, so that the others are even too. `costs` are 0 or more
    and as many as `stages`, or more.
    """
    sums = [0.0, *itertools.accumulate(costs)]
    # best[stages][end]: (dearest stage, sum of squares, where the last stage begins) of the parts before `end`.
    best = {0: {0: (0.0, 0.0, 0)}}
    for stage in range(1, stages + 1):
        best[stage] = {
            end: min(
                (max(dearest, cost := sums[end] - sums[begin]), squares + cost * cost, begin)
                for begin, (dearest, squares, _) in best[stage - 1].items()
                if begin < end
            )
            for end in range(stage, len(costs) - (stages - stage) + 1)
        }
    sizes = list[int]()
    end = len(costs)
    for stage in range(stages, 0, -1):
        begin = best[stage][end][2]
        sizes.append(end - begin)
        end = begin
    return tuple(reversed(sizes))


def check_stages(stages: int, blocks: int) -> None:
    """Raises `Unfit` where a network has fewer blocks than it is to have stages."""
    if blocks < stages:
        raise Unfit(f"{stages} stages of a network with {blocks} blocks; {blocks} is the most")


def spans(sizes: Sequence[int]) -> tuple[range, ...]:
    """The numbers of the parts of each stage."""
    bounds = [0, *itertools.accumulate(sizes)]
    return tuple(range(*pair) for pair in itertools.pairwise(bounds))


def in_words(sizes: Sequence[int]) -> str:
    """`0-2 | 3 | 4-9`: which parts each stage holds."""
    return " | ".join(f"{one[0]}-{one[-1]}" if len(one) > 1 else str(one[0]) for one in spans(sizes))
