"""How people write the ten digits: the strokes that the generator bends, and the curves through them.

A style is a table of control points and the strokes that join them. Coordinates are (x, y) with y down; a
digit stands in the square from 0 to 1. A stroke of two points is straight, a longer one a smooth curve
(Catmull-Rom); where two strokes share a point the pen turned a corner there, and both ends move together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEGMENTS_PER_SPAN = 3
"""Straight pieces between two neighbouring control points of a curve: at 28 pixels no corner shows."""


@dataclass(frozen=True)
class Style:
    """One way to write `digit`; `share` is how often, relative to the digit's other styles."""

    digit: int
    share: float
    points: tuple[tuple[float, float], ...]
    strokes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Segments:
    """The straight segments of every style as weights of its control points, padded to one shape, float32.

    `points` [styles, points, 2]; `starts` and `ends` [styles, segments, points]: row times control points is
    one end of a segment; `counts` [styles]: how many segments a style really has.
    """

    points: NDArray[np.float32]
    starts: NDArray[np.float32]
    ends: NDArray[np.float32]
    counts: NDArray[np.int64]


# Set by hand: a formatter would give every point a line of its own.
# fmt: off
STYLES: tuple[Style, ...] = (
    # A loop from the top, anticlockwise.
    Style(0, 1.0, ((0.52, 0.02), (0.28, 0.16), (0.20, 0.50), (0.29, 0.85), (0.52, 0.98), (0.74, 0.83), (0.80, 0.48),
                   (0.70, 0.13)),
          ((0, 1, 2, 3, 4, 5, 6, 7, 0),)),
    # A loop whose end crosses its beginning.
    Style(0, 0.4, ((0.60, 0.06), (0.36, 0.10), (0.23, 0.42), (0.29, 0.82), (0.52, 0.97), (0.74, 0.80), (0.77, 0.42),
                   (0.66, 0.12), (0.44, 0.05)),
          ((0, 1, 2, 3, 4, 5, 6, 7, 8),)),
    # A single downstroke.
    Style(1, 1.0, ((0.52, 0.00), (0.50, 0.50), (0.48, 1.00)),
          ((0, 1, 2),)),
    # With a flag.
    Style(1, 0.5, ((0.30, 0.24), (0.54, 0.00), (0.53, 0.50), (0.52, 1.00)),
          ((0, 1), (1, 2, 3))),
    # With a flag and a foot.
    Style(1, 0.25, ((0.31, 0.22), (0.52, 0.00), (0.51, 0.50), (0.50, 0.97), (0.28, 0.98), (0.72, 0.98)),
          ((0, 1), (1, 2, 3), (4, 5))),
    # A hook, a slanted back and a flat base.
    Style(2, 1.0, ((0.23, 0.24), (0.36, 0.05), (0.60, 0.04), (0.73, 0.24), (0.60, 0.50), (0.40, 0.74), (0.20, 0.96),
                   (0.80, 0.95)),
          ((0, 1, 2, 3, 4, 5, 6), (6, 7))),
    # With a small loop where the back meets the base.
    Style(2, 0.7, ((0.24, 0.20), (0.42, 0.03), (0.68, 0.12), (0.68, 0.40), (0.46, 0.74), (0.24, 0.93), (0.20, 0.80),
                   (0.36, 0.78), (0.56, 0.93), (0.82, 0.88)),
          ((0, 1, 2, 3, 4, 5, 6, 7, 8, 9),)),
    # Two bows that meet in a point.
    Style(3, 1.0, ((0.25, 0.13), (0.47, 0.01), (0.70, 0.14), (0.64, 0.36), (0.42, 0.47), (0.70, 0.58), (0.76, 0.80),
                   (0.52, 0.98), (0.22, 0.87)),
          ((0, 1, 2, 3, 4), (4, 5, 6, 7, 8))),
    # A flat top and one bow.
    Style(3, 0.35, ((0.24, 0.04), (0.72, 0.03), (0.46, 0.40), (0.70, 0.50), (0.77, 0.74), (0.55, 0.97), (0.22, 0.88)),
          ((0, 1), (1, 2), (2, 3, 4, 5, 6))),
    # Open at the top.
    Style(4, 1.0, ((0.28, 0.05), (0.24, 0.34), (0.25, 0.54), (0.80, 0.53), (0.72, 0.02), (0.68, 0.50), (0.65, 1.00)),
          ((0, 1, 2), (2, 3), (4, 5, 6))),
    # Closed at the top.
    Style(4, 0.6, ((0.60, 0.00), (0.38, 0.32), (0.17, 0.64), (0.84, 0.65), (0.60, 0.50), (0.59, 1.00)),
          ((0, 1, 2), (2, 3), (0, 4, 5))),
    # A cap, a short neck, a belly.
    Style(5, 1.0, ((0.76, 0.03), (0.34, 0.05), (0.29, 0.43), (0.52, 0.37), (0.75, 0.52), (0.72, 0.84), (0.47, 0.98),
                   (0.20, 0.87)),
          ((0, 1), (1, 2), (2, 3, 4, 5, 6, 7))),
    # In one go, without corners.
    Style(5, 0.4, ((0.80, 0.05), (0.46, 0.08), (0.36, 0.24), (0.42, 0.42), (0.64, 0.54), (0.70, 0.78), (0.48, 0.98),
                   (0.20, 0.90)),
          ((0, 1, 2, 3, 4, 5, 6, 7),)),
    # A long back that curls into a loop.
    Style(6, 1.0, ((0.64, 0.00), (0.38, 0.24), (0.24, 0.60), (0.34, 0.92), (0.58, 0.96), (0.74, 0.76), (0.60, 0.55),
                   (0.38, 0.62), (0.28, 0.78)),
          ((0, 1, 2, 3, 4, 5, 6, 7, 8),)),
    # A bar and a stem.
    Style(7, 1.0, ((0.20, 0.08), (0.78, 0.05), (0.58, 0.48), (0.42, 1.00)),
          ((0, 1), (1, 2, 3))),
    # With a dash across the stem.
    Style(7, 0.5, ((0.20, 0.08), (0.78, 0.06), (0.58, 0.48), (0.42, 1.00), (0.34, 0.54), (0.76, 0.50)),
          ((0, 1), (1, 2, 3), (4, 5))),
    # With a hook at the left end of the bar.
    Style(7, 0.3, ((0.22, 0.26), (0.24, 0.08), (0.80, 0.06), (0.60, 0.40), (0.48, 1.00)),
          ((0, 1), (1, 2), (2, 3, 4))),
    # One line that crosses itself in the middle.
    Style(8, 1.0, ((0.70, 0.12), (0.46, 0.01), (0.29, 0.20), (0.48, 0.44), (0.72, 0.68), (0.56, 0.97), (0.27, 0.84),
                   (0.40, 0.56), (0.66, 0.34)),
          ((0, 1, 2, 3, 4, 5, 6, 7, 8, 0),)),
    # Two loops, one on the other.
    Style(8, 0.3, ((0.50, 0.46), (0.28, 0.26), (0.48, 0.02), (0.71, 0.22), (0.24, 0.76), (0.50, 0.99), (0.77, 0.74)),
          ((0, 1, 2, 3, 0), (0, 4, 5, 6, 0))),
    # A loop and a straight stem.
    Style(9, 1.0, ((0.70, 0.16), (0.46, 0.03), (0.25, 0.24), (0.36, 0.47), (0.60, 0.40), (0.71, 0.10), (0.66, 0.50),
                   (0.60, 1.00)),
          ((0, 1, 2, 3, 4, 0), (5, 6, 7))),
    # A stem that curls to the left.
    Style(9, 0.6, ((0.72, 0.20), (0.50, 0.02), (0.27, 0.20), (0.36, 0.46), (0.62, 0.42), (0.73, 0.12), (0.74, 0.55),
                   (0.60, 0.92), (0.30, 0.94)),
          ((0, 1, 2, 3, 4, 0), (5, 6, 7, 8))),
)
# fmt: on


def style_limits(digits: int) -> NDArray[np.float64]:
    """[digits, styles]: a number in [0, 1) draws, for its digit, the first style whose limit is above it."""
    shares = np.zeros((digits, len(STYLES)))
    for column, style in enumerate(STYLES):
        shares[style.digit, column] = style.share
    limits: NDArray[np.float64] = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)
    for digit in range(digits):
        # Rounding could leave the last limit just below 1, and a draw above it without a style.
        last = max(column for column, style in enumerate(STYLES) if style.digit == digit)
        limits[digit, last:] = 1.0
    return limits


def segments() -> Segments:
    """All styles cut into straight segments."""
    most_points = max(len(style.points) for style in STYLES)
    points = np.zeros((len(STYLES), most_points, 2), np.float32)
    starts, ends = [], []
    for row, style in enumerate(STYLES):
        points[row, : len(style.points)] = style.points
        curves = [_curve(stroke, most_points) for stroke in style.strokes]
        starts.append(np.concatenate([curve[:-1] for curve in curves]))
        ends.append(np.concatenate([curve[1:] for curve in curves]))
    counts = np.array([len(start) for start in starts])
    return Segments(points, _padded(starts, counts.max()), _padded(ends, counts.max()), counts)


def _curve(stroke: tuple[int, ...], points: int) -> NDArray[np.float64]:
    """[samples, points] weights: row i times the control points is sample i along the stroke."""
    knots = np.eye(points)[list(stroke)]
    if len(stroke) == 2:
        return knots
    closed = stroke[0] == stroke[-1]
    # A curve needs a neighbour beyond each end: round the loop if it is closed, else the end's mirror image.
    before = knots[-2] if closed else 2 * knots[0] - knots[1]
    after = knots[1] if closed else 2 * knots[-1] - knots[-2]
    knots = np.concatenate([before[None], knots, after[None]])
    samples = [knots[1]]
    for span in range(len(stroke) - 1):
        a, b, c, d = knots[span : span + 4]
        for piece in range(1, SEGMENTS_PER_SPAN + 1):
            t = piece / SEGMENTS_PER_SPAN
            bend = (2 * a - 5 * b + 4 * c - d) + (3 * b - a - 3 * c + d) * t
            samples.append((2 * b + ((c - a) + bend * t) * t) / 2)
    return np.array(samples)


def _padded(weights: list[NDArray[np.float64]], length: int) -> NDArray[np.float32]:
    """Every style's rows, filled up with zeros to `length`."""
    rows = np.zeros((len(weights), length, weights[0].shape[1]), np.float32)
    for row, one in zip(rows, weights, strict=True):
        row[: len(one)] = one
    return rows
