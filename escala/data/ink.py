"""Pen strokes to grey images: the distance of every pixel to the nearest stroke, then ink, blur and grain.

Only additions, multiplications, divisions, square roots and comparisons of float32, one array operation each:
the floating-point standard rounds these exactly, so every machine draws the same bytes. Arrays hold the images
along their LAST axis, [y, x, images], so that what is one number an image needs no copies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

SIDE = 28
"""Pixels along each edge of an image."""

_PIXELS = np.arange(SIDE, dtype=np.float32)
# Lines worked on at once: with 500 images the scratch arrays then stay in the second-level cache.
_STRIP = 7
_FAR = np.float32(1e6)
_HALF = np.float32(0.5)
_WHITE = np.float32(255)


@dataclass(frozen=True)
class Pens:
    """How each image was written, [images] each: `radius` of the stroke in pixels, the rest as shares of white.

    `ink` is the brightness of a full stroke; `blur` the share that each side neighbour takes; `grain` how
    much of the ink the paper may swallow; `noise` the height of the background's unrest.
    """

    radius: Floats
    ink: Floats
    blur: Floats
    grain: Floats
    noise: Floats


def squared_distance(starts: Floats, ends: Floats, counts: NDArray[np.int64]) -> Floats:
    """[y, x, images]: squared distance in pixels of each pixel to the nearest of its image's segments.

    `starts` and `ends` are [segments, 2, images], (x, y) in pixels. `counts` [images] says how many segments
    an image has and must not rise from one image to the next: a segment that the last images lack is then
    worked out for the first ones only.
    """
    nearest = np.full((SIDE, SIDE, len(counts)), _FAR, np.float32)
    steps = ends - starts
    lengths = steps[:, 0] * steps[:, 0] + steps[:, 1] * steps[:, 1]
    # A segment without length is a dot: any slope will do, as long as it is finite.
    slopes = steps / np.maximum(lengths, np.float32(1e-6))[:, None]
    scratch = np.empty((2, _STRIP, SIDE, len(counts)), np.float32)
    for segment in range(int(counts.max(initial=0))):
        images = int(np.count_nonzero(counts > segment))
        along, across = scratch[0, ..., :images], scratch[1, ..., :images]
        step_x, step_y = steps[segment, :, :images]
        from_x = _PIXELS[:, None] - starts[segment, 0, :images]
        from_y = _PIXELS[:, None] - starts[segment, 1, :images]
        part_x = from_x * slopes[segment, 0, :images]
        part_y = from_y * slopes[segment, 1, :images]
        for top in range(0, SIDE, _STRIP):
            lines = slice(top, top + _STRIP)
            np.add(part_x, part_y[lines, None], out=along)
            np.clip(along, 0, 1, out=along)
            np.multiply(along, step_x, out=across)
            np.subtract(across, from_x, out=across)
            np.multiply(across, across, out=across)
            np.multiply(along, step_y, out=along)
            np.subtract(along, from_y[lines, None], out=along)
            np.multiply(along, along, out=along)
            np.add(along, across, out=along)
            np.minimum(nearest[lines, :, :images], along, out=nearest[lines, :, :images])
    return nearest


def inked(squared: Floats, pens: Pens, unrest: Floats) -> NDArray[np.uint8]:
    """[y, x, images] grey values, white on black, of strokes at these squared distances.

    `unrest` is a random number in [0, 1) a pixel, [y, x, images].
    """
    image = pens.radius + _HALF - np.sqrt(squared)
    np.clip(image, 0, 1, out=image)
    for axis in (0, 1):
        _blur(image, pens.blur, axis)
    image *= pens.ink
    image *= 1 - pens.grain * unrest
    # The mirror image serves as the background's own unrest: as random, and half the numbers to draw.
    image += (unrest[::-1] - _HALF) * pens.noise
    np.clip(image, 0, 1, out=image)
    image *= _WHITE
    image += _HALF
    return image.astype(np.uint8)


def _blur(image: Floats, share: Floats, axis: int) -> None:
    """Give each pixel's two neighbours along `axis` their share of it, in place."""
    lines = np.moveaxis(image, axis, 0)
    given = lines * share
    lines *= 1 - 2 * share
    lines[1:] += given[:-1]
    lines[:-1] += given[1:]
