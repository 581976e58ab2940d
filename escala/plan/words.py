"""How names and values stand on an error line: short and escaped."""

from __future__ import annotations

import json
import re

from escala.plan.locate import Path
from escala.terms.printable import printable

LARGEST = 2**63 - 1
"""Largest whole number that TOML promises and a record can hold."""

_LONGEST_SHOWN = 60
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def dotted(path: Path) -> str:
    """`path` as `--set` takes it: `strategy.0.ways`, `sweep."train.batch"`."""
    return ".".join(str(part) if isinstance(part, int) or _BARE.fullmatch(part) else _quoted(part) for part in path)


def shown(value: object) -> str:
    """A value on one short line, much as it stands in TOML, with nothing in it that a terminal obeys."""
    match value:
        case bool():
            text = str(value).lower()
        case str():
            text = _quoted(value[:_LONGEST_SHOWN])
        case int() if abs(value) > LARGEST:
            # Python refuses to write very long numbers in decimal.
            text = hex(value)
        case dict():
            text = "{…}" if value else "{}"
        case list() | tuple():
            text = f"[{', '.join('…' if isinstance(item, list | dict) else shown(item) for item in value[:9])}]"
        case _:
            text = str(value)
    return cut(text)


def cut(text: str) -> str:
    """`text` without control characters and stray bytes, and without what is too long for an error line."""
    text = printable(text[:_LONGEST_SHOWN])
    return text if len(text) < _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def _quoted(text: str) -> str:
    return printable(json.dumps(text, ensure_ascii=False))
