"""How nine species of fish are built, and the outline of one fish from its measures.

A species is a row of measures with a spread: every fish of it has measures of its own, and those of related species
overlap, as in nature. Lengths are in body lengths, from the snout at x = 0 to where the tail fin begins at x = 1; y
points down. From the measures come 23 landmarks in a fixed order around the fish, from the snout over the back;
between landmarks runs a cubic curve, with a corner where a fin or the mouth makes one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from escala.data.generated import Floats

SPECIES = ("anchovy", "bass", "bream", "cod", "gurnard", "hake", "mackerel", "mullet", "tuna")
"""The fish that the families resemble, in the order of the classes."""

MEASURES = (
    "depth",  # greatest depth of the body
    "belly",  # share of it below the axis
    "peak",  # where it lies
    "snout",  # 0 pointed, 1 blunt
    "stalk",  # depth where the tail fin begins
    "begin",  # where the dorsal fin begins
    "end",  # where it ends
    "front",  # its height in front
    "rear",  # and behind
    "second",  # height of a second dorsal fin; 0: none
    "anal",  # height of the anal fin
    "pelvic",  # length of the pelvic fins
    "tail",  # length of the tail fin
    "spread",  # half its width
    "fork",  # how deep it is cut, as a share of its length; below 0: rounded
)

# Set by hand: a formatter would give every number a line of its own.
# fmt: off
_MEANS = np.array((
    # depth belly peak  snout stalk begin  end   front  rear  second anal  pelvic tail spread fork
    (0.19, 0.58, 0.38, 0.35, 0.060, 0.45, 0.62, 0.090, 0.02, 0.000, 0.05, 0.05, 0.19, 0.13, 0.62),
    (0.29, 0.50, 0.36, 0.40, 0.100, 0.32, 0.60, 0.110, 0.04, 0.090, 0.09, 0.10, 0.21, 0.14, 0.28),
    (0.43, 0.47, 0.34, 0.62, 0.095, 0.28, 0.80, 0.100, 0.06, 0.000, 0.08, 0.12, 0.25, 0.18, 0.50),
    (0.25, 0.57, 0.33, 0.50, 0.060, 0.28, 0.48, 0.100, 0.04, 0.075, 0.09, 0.07, 0.18, 0.11, 0.08),
    (0.22, 0.40, 0.22, 0.70, 0.050, 0.26, 0.42, 0.130, 0.03, 0.070, 0.08, 0.15, 0.20, 0.11, 0.15),
    (0.18, 0.52, 0.30, 0.30, 0.055, 0.30, 0.42, 0.095, 0.03, 0.070, 0.08, 0.08, 0.15, 0.10, 0.05),
    (0.21, 0.51, 0.42, 0.30, 0.030, 0.34, 0.50, 0.100, 0.01, 0.040, 0.05, 0.05, 0.18, 0.15, 0.68),
    (0.25, 0.52, 0.38, 0.55, 0.105, 0.42, 0.54, 0.100, 0.03, 0.080, 0.08, 0.09, 0.22, 0.14, 0.42),
    (0.29, 0.50, 0.42, 0.42, 0.025, 0.34, 0.54, 0.100, 0.03, 0.120, 0.12, 0.07, 0.17, 0.19, 0.74),
), np.float32)
_SPREADS = np.array(
    (0.055, 0.07, 0.06, 0.25, 0.020, 0.06, 0.08, 0.05, 0.03, 0.04, 0.04, 0.05, 0.05, 0.04, 0.18), np.float32)
_LEAST = np.array((0.1, 0.2, 0.1, 0, 0.015, 0.1, 0.2, 0, 0, 0, 0, 0, 0.05, 0.05, -0.3), np.float32)
"""No fish goes below these."""
_CORNERS = np.array((0, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16, 18, 19, 20))
"""Landmarks at which the outline has a corner."""
# fmt: on

LANDMARKS = 23
PIECES = 5
"""Straight pieces between two landmarks."""

_SECOND_GAP = np.float32(0.03)
_STALK_AT = np.float32(0.97)
_ONE = np.float32(1)
_HALF = np.float32(0.5)


def measures(species: NDArray[np.int64], unlike: Floats) -> Floats:
    """[fish, measures] from the species [fish] and how unlike its mean each one is, in spreads [fish, measures]."""
    drawn: Floats = _MEANS[species] + _SPREADS * unlike
    # A fin of no height stays that: the spread is for those who have it.
    none = _MEANS[species, MEASURES.index("second")] == 0
    drawn[none, MEASURES.index("second")] = 0
    return np.maximum(drawn, _LEAST)


def landmarks(fish: Floats, raised: Floats) -> Floats:
    """[fish, 23, 2] from measures [fish, measures].

    `raised` [fish, 3]: how far the dorsal, the lower and the tail fins stand out: by 1 as measured, by 0 not at all.
    """
    measured = dict(zip(MEASURES, fish.T, strict=True))
    dorsal, lower, opened = raised.T
    above = measured["depth"] * (_ONE - measured["belly"])
    below = measured["depth"] * measured["belly"]
    stalk = measured["stalk"] * _HALF
    begin, end = measured["begin"], np.maximum(measured["end"], measured["begin"] + np.float32(0.08))
    second_begin = np.minimum(end + _SECOND_GAP, np.float32(0.84))
    second_end = np.minimum(second_begin + np.float32(0.16), np.float32(0.92))

    def back(x: Floats) -> Floats:
        return -_profile(x, measured["peak"], above, stalk, measured["snout"])

    def front(x: Floats) -> Floats:
        return _profile(x, measured["peak"], below, stalk, measured["snout"])

    def at(x: float) -> Floats:
        return np.full(len(fish), np.float32(x))

    tail_x = _ONE + measured["tail"]
    tip = np.maximum(measured["spread"] * opened, stalk)
    places = (
        (at(0), at(0)),
        (at(0.07), back(at(0.07))),
        (begin * np.float32(0.6), back(begin * np.float32(0.6))),
        (begin, back(begin)),
        (begin + np.float32(0.05), back(begin) - measured["front"] * dorsal),
        (end + np.float32(0.01), back(end) - measured["rear"] * dorsal),
        (end, back(end)),
        (second_begin + np.float32(0.06), back(second_begin) - measured["second"] * dorsal),
        (second_end, back(second_end)),
        (at(0.97), back(at(0.97))),
        (tail_x, -tip),
        (tail_x - measured["tail"] * measured["fork"], at(0)),
        (tail_x, tip),
        (at(0.97), front(at(0.97))),
        (at(0.86), front(at(0.86))),
        (at(0.80), front(at(0.74)) + measured["anal"] * lower),
        (at(0.66), front(at(0.66))),
        (at(0.54), front(at(0.54))),
        (at(0.44), front(at(0.44))),
        (at(0.46), front(at(0.40)) + measured["pelvic"] * lower),
        (at(0.35), front(at(0.35))),
        (at(0.20), front(at(0.20))),
        (at(0.06), front(at(0.06))),
    )
    return np.stack([np.stack(place, 1) for place in places], 1)


def outlined(points: Floats) -> Floats:
    """[fish, 115, 2]: corners of the closed outline through landmarks [fish, 23, 2], in float32 as they are."""
    after = np.roll(points, -1, axis=1)
    slopes = (after - np.roll(points, 1, axis=1)) * _HALF
    slopes[:, _CORNERS] = 0
    next_slopes = np.roll(slopes, -1, axis=1)
    pieces = np.empty((len(points), LANDMARKS, PIECES, 2), np.float32)
    for piece in range(PIECES):
        # Hermite's cubic: at 0 the landmark, at 1 the next one.
        t = piece / PIECES
        pieces[:, :, piece] = points + np.float32(t * t * (3 - 2 * t)) * (after - points)
        pieces[:, :, piece] += np.float32(t * (1 - t) * (1 - t)) * slopes
        pieces[:, :, piece] -= np.float32(t * t * (1 - t)) * next_slopes
    return pieces.reshape(len(points), LANDMARKS * PIECES, 2)


def _profile(x: Floats, peak: Floats, height: Floats, stalk: Floats, snout: Floats) -> Floats:
    """How far the body reaches from its axis at `x`: a nose up to the peak, then tapering to the stalk."""
    ahead = np.clip((peak - x) / peak, 0, 1)
    blunt, pointed = np.sqrt(_ONE - ahead * ahead), _ONE - ahead * np.sqrt(ahead)
    nose = height * (pointed + snout * (blunt - pointed))
    behind = np.clip((x - peak) / (_STALK_AT - peak), 0, 1)
    taper = behind * behind * (3 - 2 * behind)
    reach: Floats = np.where(x < peak, nose, height + taper * (stalk - height))
    return reach
