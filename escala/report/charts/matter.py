"""What charts are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from msgspec import Struct

from escala.analyse.attribute import Attribution
from escala.analyse.epochs import EpochRow
from escala.analyse.published import Published
from escala.analyse.row import Summary


class Line(Struct, frozen=True):
    """Power of one part of the machine over one trial: watts at seconds from the trial's first sample."""

    where: str
    seconds: tuple[float, ...]
    watts: tuple[float, ...]


class Shade(Struct, frozen=True):
    """A stretch of a phase, in the same seconds."""

    phase: str
    begin: float
    end: float


class Trace(Struct, frozen=True):
    """Power over one trial of the row `label` at `point`, in words."""

    label: str
    point: str
    lines: tuple[Line, ...]
    shades: tuple[Shade, ...]


class Matter(Struct, frozen=True):
    """Rows, the same rows epoch by epoch, one power trace of each row that has any, published figures, and
    speed-ups taken apart."""

    rows: Sequence[Summary]
    epochs: Sequence[EpochRow] = ()
    traces: Sequence[Trace] = ()
    published: Published | None = None
    attributions: Sequence[Attribution] = ()


class Values:
    """Rows of data that the grammar takes as they are; lists and dicts it copies at every step."""

    _schema: ClassVar[dict[str, str]] = {"type": "array"}

    def __init__(self, rows: Sequence[Mapping[str, object]]) -> None:
        self._rows = list(rows)

    def to_dict(self) -> list[Mapping[str, object]]:
        """The rows, when the chart becomes JSON."""
        return self._rows


def values(rows: Sequence[Mapping[str, object]]) -> dict[str, Values]:
    """Rows of data as a chart holds them inside itself."""
    return {"values": Values(rows)}
