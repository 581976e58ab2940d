"""Silhouettes of fish from a seeded generator: masks of nine species, 148 rows of 197 pixels or as many as asked
for, float16 in 0..1.

Every fish has measures of its own around its species' (see outlines.py), is bent as in swimming, foreshortened,
turned, looks left or right, is near or far, and holds its fins more or less open. It is cut out of its picture badly,
as masks are: the outline is ragged, pieces are missing at the rim or added, holes and specks remain. Outlines lie in
a frame of 590 x 445 pixels, as in the thesis of `published.md` A, and are filled at a third of that, which is what
scaling the mask down gives. 9 times 1,000 images as there: of 7,830 training rows a share of 180/7830 for validation
leaves its split of 85 / 2 / 13 %.

Measured with seed 0 at a quarter of the resolution, 37 x 49, after 4,050 training rows, on 900 test rows: logistic
regression on the pixels gets 27 % right, three convolutions (24, 48 and 96 maps, each with batch normalisation) and a
hidden layer of 128 get 73 % after 8 epochs of SGD, batch 64, lr up to 0.05 and down again, momentum 0.9. All 9,000
rows take 5 s on two free cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from escala.data.base import Facts, Inputs, Part, Source, Targets
from escala.data.fill import filled
from escala.data.generated import (
    Floats,
    bell,
    between,
    block_targets,
    draw_blocks,
    shuffled_classes,
    sizes,
    stream,
    turned,
)
from escala.data.outlines import MEASURES, SPECIES, landmarks, measures, outlined
from escala.terms.errors import EscalaError

REVISION = 1
"""Raised whenever a change here, in the outlines or in their filling changes a single byte of any image."""

CLASSES = len(SPECIES)
BLOCK = 90
"""Rows that share one stream of random numbers, and hold every species equally often; a change is a new revision."""
HEIGHT, WIDTH = 148, 197
FRAME = (590, 445)
"""Pixels of the picture that the masks are scaled down from, width and height."""

LENGTH = (0.45, 0.80)
"""Of a body, in widths of the frame."""
FORESHORTENED = (0.72, 1.0)
TURN = 0.26
"""Reach of the tangent of half the angle: about 29 degrees."""
BEND = 0.28
"""Reach of how far, in body lengths, the axis has left a straight line one length from its middle."""
SHIFT = (0.13, 0.16)
"""Reaches, in widths and heights of the frame."""
RAISED = (0.35, 1.15)
"""How far fins stand out."""
WOBBLE = 0.012
"""Reach of a landmark, in body lengths."""
RAGGED = (0.5, 5.0)
"""Reach of a corner of the outline, pixels of the frame; drawn once an image."""

RIM, SPECKS = 5, 4
"""Pieces at the rim, missing or too many; specks anywhere, also as holes."""
BLOB = 26.0
"""Their greatest radius, pixels of the frame; their radii are small more often than great."""

_CIRCLE = np.array(((1, 0), (0.7, 0.7), (0, 1), (-0.7, 0.7), (-1, 0), (-0.7, -0.7), (0, -1), (0.7, -0.7)), np.float32)
LARGEST = 1024
"""Pixels of a side."""


@dataclass(frozen=True)
class Fish(Source):
    """`train` and `test` rows drawn from `seed`."""

    name: str = "synthetic-fish"
    train: int = 7_830
    test: int = 1_170
    seed: int = 0
    width: int = WIDTH
    height: int = HEIGHT

    def facts(self) -> Facts:
        """Shape, type, and the settings that decide every byte."""
        where = f"fish generator {REVISION}, {self.train} + {self.test} rows, seed {self.seed}"
        if (self.width, self.height) != (WIDTH, HEIGHT):
            where += f", {self.width} x {self.height}"
        shape = (self.height, self.width)
        return Facts(self.name, "generated", where, shape, "float16", CLASSES, class_names=SPECIES)

    def targets(self, part: Part) -> Targets:
        """The species, without drawing them: each block of 90 rows holds every one 10 times."""
        return block_targets(self.seed, part, self._rows(part), BLOCK, CLASSES)

    def blocks(self, part: Part) -> Iterator[Inputs]:
        """The masks, 90 at a time, drawn by a few threads ahead of the reader."""

        def draw(number: int) -> Inputs:
            return draw_block(self.seed, part, number, self.width, self.height)

        return draw_blocks(draw, self._rows(part), BLOCK, "fish")

    def _rows(self, part: Part) -> int:
        return self.train if part == "train" else self.test


def find(name: str, _environ: Mapping[str, str]) -> Fish:
    """The generator: `synthetic-fish[@WIDTHxHEIGHT][:TRAIN+TEST]`, in that resolution and of so many rows.

    Raises EscalaError CFG-RANGE where these are not positive numbers, or a side is too long or too short.
    """
    train, test = sizes(name, Fish.train, Fish.test)
    width, height = _resolution(name)
    return Fish(name, train, test, width=width, height=height)


def _resolution(name: str) -> tuple[int, int]:
    base, at, asked = name.partition(":")[0].partition("@")
    if not at:
        return WIDTH, HEIGHT
    width, by, height = asked.partition("x")
    if by and all(side.isascii() and side.isdigit() and 8 <= int(side) <= LARGEST for side in (width, height)):
        return int(width), int(height)
    raise EscalaError(
        "CFG-RANGE",
        "workload.data",
        f"{name} names no resolution",
        expected=f"{base}@WIDTHxHEIGHT, each side from 8 to {LARGEST:,} pixels",
        next_step=f"write {base} or, for example, {base}@295x222",
    )


def draw_block(seed: int, part: Part, number: int, width: int = WIDTH, height: int = HEIGHT) -> NDArray[np.float16]:
    """The 90 masks of one block, [90, height, width]. The fish are the same at any resolution."""
    scale = np.array((width / FRAME[0], height / FRAME[1]), np.float32)
    numbers = stream(seed, part, number)
    species = shuffled_classes(numbers, BLOCK, CLASSES)
    fish = measures(species, bell(numbers, (BLOCK, len(MEASURES)), 1.0))
    raised = np.stack([between(numbers, BLOCK, *RAISED) for _ in range(3)], 1)
    points = landmarks(fish, raised)
    points += bell(numbers, points.shape, WOBBLE)
    corners, mirrored = _posed(numbers, outlined(points))
    corners += bell(numbers, corners.shape, 1.0) * between(numbers, BLOCK, *RAGGED)[:, None, None]
    # A mirrored outline runs the other way round.
    corners[mirrored] = corners[mirrored, ::-1]
    blobs, signs = _blobs(numbers, corners)
    body = filled(corners[:, None] * scale, np.ones((BLOCK, 1), np.int64), height, width)
    added = filled(blobs * scale, np.maximum(signs, 0), height, width)
    taken = filled(blobs * scale, np.maximum(-signs, 0), height, width)
    return (np.maximum(body, added) * (1 - taken)).astype(np.float16)


def _posed(numbers: np.random.Generator, outline: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """[90, corners, 2] in pixels of the frame from outlines in body lengths, and which of them are mirrored."""
    x, y = outline[..., 0] - np.float32(0.55), outline[..., 1]
    y = y + bell(numbers, (BLOCK, 1), BEND) * x * x
    length = (between(numbers, BLOCK, *LENGTH) * np.float32(FRAME[0]))[:, None]
    x, y = x * (length * between(numbers, BLOCK, *FORESHORTENED)[:, None]), y * length
    mirrored = numbers.random(BLOCK) < 0.5
    x[mirrored] = -x[mirrored]
    cosine, sine = turned(bell(numbers, (BLOCK, 1), TURN))
    posed = np.empty_like(outline)
    posed[..., 0] = x * cosine - y * sine
    posed[..., 1] = x * sine + y * cosine
    for axis, size in enumerate(FRAME):
        posed[..., axis] += np.float32(size / 2) + bell(numbers, (BLOCK, 1), SHIFT[axis] * size)
    return posed, mirrored


def _blobs(numbers: np.random.Generator, corners: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Faults of the mask: eight-cornered outlines [90, blobs, 8, 2], and whether each adds (1) or takes away (-1)."""
    at_rim = numbers.random((BLOCK, RIM)) * corners.shape[1]
    rim = np.take_along_axis(corners, at_rim.astype(np.int64)[..., None], axis=1)
    anywhere = numbers.random((BLOCK, SPECKS, 2), dtype=np.float32) * np.array(FRAME, np.float32)
    middles = np.concatenate([rim, anywhere], axis=1)
    radii = numbers.random((BLOCK, RIM + SPECKS, 1, 1), dtype=np.float32)
    radii = radii * radii * radii * np.float32(BLOB)
    shape = _CIRCLE * (1 + bell(numbers, (BLOCK, RIM + SPECKS, len(_CIRCLE), 1), 0.5))
    signs = np.where(numbers.random((BLOCK, RIM + SPECKS)) < 0.5, 1, -1)
    return middles[:, :, None] + shape * radii, signs
