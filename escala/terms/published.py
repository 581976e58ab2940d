"""Figures that somebody published, as a study states them beside its own experiment."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

Figure = Literal[
    "speed-up",
    "speed-up, training",
    "efficiency",
    "efficiency, training",
    "score",
    "train s/epoch",
    "train s",
    "validation s",
    "test s",
    "total s",
    "samples/s",
    "energy",
    "energy with idle",
    "EDP",
    "EDP with idle",
]
"""What a published figure may be of. `speed-up` and `efficiency` are over all phases, and so are energy and EDP;
EDP is a multiple of a row's, and with idle means with the boards that idled."""
Unit = Literal["", "x", "%", "s", "min", "h", "J"]

_TIMES: dict[Unit, float] = {"s": 1.0, "min": 60.0, "h": 3600.0}
_SHARES: dict[Unit, float] = {"": 1.0, "%": 0.01}
UNITS: dict[Figure, dict[Unit, float]] = {
    "speed-up": {"x": 1.0, "": 1.0},
    "speed-up, training": {"x": 1.0, "": 1.0},
    "efficiency": _SHARES,
    "efficiency, training": _SHARES,
    "score": _SHARES,
    "train s/epoch": _TIMES,
    "train s": _TIMES,
    "validation s": _TIMES,
    "test s": _TIMES,
    "total s": _TIMES,
    "samples/s": {"": 1.0},
    "energy": {"J": 1.0},
    "energy with idle": {"J": 1.0},
    "EDP": {"": 1.0},
    "EDP with idle": {"": 1.0},
}
"""The units in which each may be given, and what one of them is in the unit that is measured in."""


class PublishedSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[published]]`: a figure of the source, and the row of this experiment that it belongs to."""

    row: str
    """Label of a strategy."""
    figure: Figure
    value: float | str
    """A number, or words where the source has no number."""
    unit: Unit = ""
    against: str | None = None
    """Label that a speed-up, efficiency or EDP is against; left out: the experiment's baseline."""
    case: str | None = None
    """Name of the case; left out: any."""
    point: dict[str, Any] = field(default_factory=dict)
    """Swept keys with their values; those left out: any."""
    note: str = ""


class SourceSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """`[source]`: where the published figures come from, and what they were measured on."""

    work: str
    machine: str = ""
    data: str = ""
    epochs: Annotated[int, Meta(ge=1)] | None = None
