"""The front of a cost plane."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from escala.analyse.pareto import front

POINTS = st.lists(st.tuples(st.integers(0, 5).map(float), st.integers(0, 5).map(float)), max_size=12)


def test_the_front_of_a_plane_by_hand() -> None:
    points = [(1.0, 9.0), (2.0, 5.0), (3.0, 6.0), (4.0, 5.0), (5.0, 1.0)]
    assert front(points) == (0, 1, 4)
    # Where more of y is better, what was dear is on the front if it is good.
    assert front(points, y_lower=False) == (0,)
    assert front([(1.0, 2.0), (1.0, 2.0)]) == (0, 1)
    assert front([]) == ()


@given(POINTS, st.booleans())
def test_nothing_beats_what_is_on_the_front_and_something_beats_the_rest(
    points: list[tuple[float, float]], lower: bool
) -> None:
    def beats(one: tuple[float, float], other: tuple[float, float]) -> bool:
        no_worse = one[0] <= other[0] and (one[1] <= other[1] if lower else one[1] >= other[1])
        return no_worse and one != other

    on = set(front(points, y_lower=lower))
    assert bool(on) == bool(points)
    for place, point in enumerate(points):
        assert (place in on) == (not any(beats(other, point) for other in points))
