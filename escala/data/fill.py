"""Closed outlines to masks: how much of every pixel lies within them, exact along each of three lines a pixel row.

Crossings are rounded to a 64th of a pixel once; from there on all is counted in whole numbers, whose sums are the
same in any order and on any machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from escala.data.generated import Floats

LINES = 3
"""Lines looked at in a row of pixels: a mask drawn three times as high and made smaller."""
FINE = 64
"""Steps in a pixel along a line."""
FULL = LINES * FINE
"""What a pixel counts that lies within."""


def filled(corners: Floats, signs: NDArray[np.int64], height: int, width: int) -> NDArray[np.float32]:
    """[images, height, width] shares in 0..1 of each pixel covered by its image's outlines.

    `corners` [images, outlines, corners, 2] are (x, y) in pixels; the last of an outline joins its first. An outline
    that runs clockwise on the screen adds with a sign [images, outlines] of 1 and cuts out with -1; where several
    add, a pixel is full no more than once.
    """
    images, outlines = corners.shape[:2]
    ends = np.roll(corners, -1, axis=2)
    owners = np.repeat(np.arange(images), outlines * corners.shape[2])
    # An edge that runs up has the inside to its right.
    upward = np.repeat(signs.reshape(-1), corners.shape[2])
    x, y = corners[..., 0].reshape(-1), corners[..., 1].reshape(-1)
    to_x, to_y = ends[..., 0].reshape(-1), ends[..., 1].reshape(-1)

    first, last = _line(np.minimum(y, to_y), height), _line(np.maximum(y, to_y), height)
    crossed = last - first
    edge = np.repeat(np.arange(len(x)), crossed)
    line = np.arange(len(edge)) - np.repeat(np.cumsum(crossed) - crossed, crossed) + first[edge]
    slope = (to_x - x) / np.where(to_y == y, np.float32(1), to_y - y)
    at = x[edge] + ((line.astype(np.float32) + np.float32(0.5)) / np.float32(LINES) - y[edge]) * slope[edge]
    place = np.floor(np.clip(at, 0, width) * np.float32(FINE)).astype(np.int64)
    turn = np.where(to_y < y, upward, -upward)[edge]

    pixel, part = place // FINE, place % FINE
    # A line's own end stops what begins in it: two more columns take what lies to the right of the image.
    cell = (owners[edge] * height + line // LINES) * (width + 2) + pixel
    cells = images * height * (width + 2)
    change = np.bincount(cell, turn * (FINE - part), cells)
    change += np.bincount(cell + 1, turn * part, cells)
    covered = np.cumsum(change.astype(np.int16).reshape(images, height, width + 2), axis=2, dtype=np.int16)
    return np.clip(covered[..., :width], 0, FULL).astype(np.float32) / np.float32(FULL)


def _line(y: Floats, height: int) -> NDArray[np.int64]:
    """The first line whose middle is not above `y`, from 0 to the number of lines."""
    lines = np.ceil(np.clip(y, 0, height) * np.float32(LINES) - np.float32(0.5)).astype(np.int64)
    within: NDArray[np.int64] = np.clip(lines, 0, height * LINES)
    return within
