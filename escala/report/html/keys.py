"""What a cell of a table is sorted by."""

from __future__ import annotations

import re
from math import inf

from escala.analyse.language import say
from escala.analyse.wording import NEVER

_NUMBER = re.compile(r"([+-]?[\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)")
_UNITS = {"MJ": 1e6, "kJ": 1e3, "J": 1.0, "GiB": 2.0**30, "MiB": 2.0**20, "ms": 1e-3, "s": 1.0}
_UNIT = re.compile(rf"\b({'|'.join(_UNITS)})(?: est\.)?\Z")


def sort_key(cell: str) -> float | None:
    """The figure that a cell begins with, in the first unit of its kind; None: it begins with none.

    What never came is infinite, since it would have taken longer than all others.
    """
    if cell.startswith(say(NEVER)):
        return inf
    found = _NUMBER.match(cell)
    if found is None or not any(sign.isdigit() for sign in found[1]):
        return None
    unit = _UNIT.search(cell)
    return float(found[1].replace(",", "")) * (_UNITS[unit[1]] if unit else 1.0)
