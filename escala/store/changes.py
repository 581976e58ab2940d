"""Where two pieces of plain data differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_ABSENT = "nothing"
_LONGEST = 60


@dataclass(frozen=True)
class Change:
    """A dotted `key` with its `old` and `new` value in words."""

    key: str
    old: str
    new: str


def changes(old: Any, new: Any, key: str = "") -> Iterator[Change]:
    """Every place where `old` and `new` differ, in the order of `old`."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in [*old, *(name for name in new if name not in old)]:
            inner = f"{key}.{name}" if key else str(name)
            yield from _item(old.get(name), new.get(name), name in old, name in new, inner)
    elif isinstance(old, list) and isinstance(new, list):
        for place in range(max(len(old), len(new))):
            yield from _item(
                old[place] if place < len(old) else None,
                new[place] if place < len(new) else None,
                place < len(old),
                place < len(new),
                f"{key}[{place}]",
            )
    # Compared with their types: to a user's factory `true` is not `1`.
    elif type(old) is not type(new) or old != new:
        yield Change(key, _words(old), _words(new))


def _item(old: Any, new: Any, in_old: bool, in_new: bool, key: str) -> Iterator[Change]:
    if in_old and in_new:
        yield from changes(old, new, key)
    else:
        yield Change(key, _words(old) if in_old else _ABSENT, _words(new) if in_new else _ABSENT)


def _words(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
