"""Steps one after another, for learners that have no other way to make several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from torch import Tensor

from escala.execution.feed import Batch

Step = Callable[[Tensor, Tensor, int, int], Tensor | None]


def stepwise(
    step: Step, batches: Iterator[Batch], mark: Callable[[int], None], first: int
) -> tuple[Sequence[Tensor | None], Sequence[int]]:
    """As `Learner.steps`, by `Learner.step`."""
    losses, counts = list[Tensor | None](), list[int]()
    for number, (inputs, targets, count, size) in enumerate(batches, first + 1):
        losses.append(step(inputs, targets, count, size))
        counts.append(count)
        mark(number)
    return losses, counts
