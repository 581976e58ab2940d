"""Bytes that are expected on one device."""

from __future__ import annotations

from msgspec import Struct

EXCHANGED = 32 * 2**20
"""Bytes that replicas of split networks exchange at once."""


class Estimate(Struct, frozen=True):
    """Bytes on one device at the peak, and what of: not all parts are there at once, so `peak` is below their sum."""

    peak: int
    parameters: int = 0
    buffers: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    stepping: int = 0
    """What the optimiser's step needs for itself."""
    snapshot: int = 0
    """The weights as they were, kept until the end of the warm-up."""
    data: int = 0
    process: int = 0
    """The program with its libraries, on the host alone."""
