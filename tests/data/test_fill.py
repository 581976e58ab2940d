from __future__ import annotations

import numpy as np
import pytest

from escala.data.fill import filled


def box(left: float, top: float, right: float, bottom: float) -> list[tuple[float, float]]:
    """Clockwise on the screen."""
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def fill(*outlines: list[tuple[float, float]], signs: list[int] | None = None) -> np.ndarray:
    corners = np.array([outlines], np.float32)
    return filled(corners, np.array([signs or [1] * len(outlines)]), 6, 8)[0]


def test_a_box_on_the_pixels() -> None:
    expected = np.zeros((6, 8), np.float32)
    expected[1:4, 2:7] = 1
    np.testing.assert_array_equal(fill(box(2, 1, 7, 4)), expected)


def test_parts_of_pixels() -> None:
    found = fill(box(2.25, 1, 3.5, 2))
    assert found[1].tolist() == [0, 0, 0.75, 0.5, 0, 0, 0, 0]
    # One of three lines lies within.
    assert fill(box(2, 1.4, 3, 1.6))[1, 2] == pytest.approx(1 / 3)


def test_a_slanted_edge_fills_half() -> None:
    found = fill([(0, 0), (6, 0), (0, 6)])
    np.testing.assert_allclose([found[line, 5 - line] for line in range(6)], 0.5, atol=0.02)
    assert found.sum() == pytest.approx(18, abs=0.2)


def test_outlines_beyond_the_image_are_cut() -> None:
    assert fill(box(-5, -5, 20, 20)).min() == 1
    assert fill(box(20, 1, 25, 3)).max() == 0
    assert fill(box(-9, 1, -5, 3)).max() == 0
    assert fill(box(1, 20, 3, 25)).max() == 0
    assert fill(box(-5, 1, 2, 2))[1].tolist() == [1, 1, 0, 0, 0, 0, 0, 0]


def test_outlines_add_up_to_full_at_most_and_cut_out() -> None:
    assert fill(box(0, 0, 5, 5), box(2, 2, 6, 6)).max() == 1
    found = fill(box(0, 0, 6, 6), box(2, 2, 4, 4), signs=[1, -1])
    assert found[2:4, 2:4].max() == 0
    assert found.sum() == 32
    assert fill(box(1, 1, 3, 3), signs=[-1]).max() == 0


def test_images_do_not_touch_each_other() -> None:
    corners = np.array([[box(0, 0, 8, 6)], [box(0, 0, 0, 0)], [box(7, 5, 8, 6)]], np.float32)
    found = filled(corners, np.ones((3, 1), np.int64), 6, 8)
    assert found.sum(axis=(1, 2)).tolist() == [48, 0, 1]
