"""Which of several points no other one beats."""

from __future__ import annotations

from collections.abc import Sequence


def front(points: Sequence[tuple[float, float]], *, y_lower: bool = True) -> tuple[int, ...]:
    """Places of the points that no other one equals in one coordinate and beats in the other, or beats in both.

    Less of x is better; less of y, too, unless `y_lower` is False. Equal points beat each other in nothing.
    """
    sided = [(x, y if y_lower else -y) for x, y in points]
    return tuple(
        place
        for place, (x, y) in enumerate(sided)
        if not any(ox <= x and oy <= y and (ox, oy) != (x, y) for ox, oy in sided)
    )
