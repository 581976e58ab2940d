"""What a report shows beside its rows, where there is any of it."""

from __future__ import annotations

from msgspec import Struct

from escala.analyse.attribute import Attribution
from escala.analyse.epochs import EpochRow
from escala.analyse.published import Published


class Annex(Struct, frozen=True):
    """Published figures of the study, the rows epoch by epoch where that was asked for, and the shares of a speed-up
    where a target is named."""

    published: Published | None = None
    epochs: tuple[EpochRow, ...] = ()
    attributions: tuple[Attribution, ...] = ()


NOTHING = Annex()
