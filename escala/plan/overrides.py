"""`--set KEY=VALUE`: values from the command line, put into an experiment before it is checked."""

from __future__ import annotations

import datetime
import tomllib
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from escala.plan.keys import Misfit, drop, follow, other_budget, put, split, swept
from escala.plan.locate import Path
from escala.plan.vary import flattened
from escala.plan.words import cut
from escala.terms.errors import EscalaError

_SHAPE = "KEY=VALUE, such as train.batch=256"
_TOO_LATE = "the quick form is laid over the experiment before --set, so this would change nothing"


class Override(Struct, frozen=True):
    """A value from the command line, and the path where it was put."""

    text: str
    path: Path

    @property
    def where(self) -> str:
        """Its place on an error line."""
        return place(self.text)


def place(text: str) -> str:
    """How an override stands on an error line."""
    return f"--set {cut(text)}"


def apply(texts: Sequence[str], tree: dict[str, Any]) -> tuple[Override, ...]:
    """Put every override into the experiment `tree`, in order.

    A budget takes the place of the file's other budget. Raises `CFG-SET` for what is no override and
    `CFG-KEY` for a key that does not exist.
    """
    done: list[Override] = []
    for text in texts:
        parts, value = parsed(text)
        try:
            path, _ = follow(parts, tree)
            if path[0] == "quick" or path[2:3] == ("quick",):
                raise EscalaError("CFG-SET", place(text), _TOO_LATE, next_step="set the key itself, beside --quick")
            flat = path == ("sweep",) or (path[0] == "case" and path[2:] == ("set",))
            value = flattened(value, path) if flat and isinstance(value, dict) else value
        except Misfit as misfit:
            raise misfit.fault.error(place(text)) from None
        other = other_budget(path)
        # Two budgets that both come from the command line contradict each other; the rules say so later.
        if other and all(earlier.path != other for earlier in done):
            drop(tree, other)
        put(tree, path, value)
        done.append(Override(text, path))
    return tuple(done)


def parsed(text: str) -> tuple[tuple[str, ...], Any]:
    """Key and value of an override; what is no TOML is taken as text. Raises `CFG-SET`."""
    try:
        text.encode()
        parts, raw = split(text)
        if raw is None:
            raise ValueError("there is no =")
        if parts[0] == "sweep" and len(parts) > 1:
            parts = ("sweep", swept(parts[1:]))
        if parts[0] == "case" and parts[2:3] == ("set",) and len(parts) > 3:
            parts = (*parts[:3], swept(parts[3:]))
    except ValueError as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeError) else str(error)
        raise EscalaError("CFG-SET", place(text), reason, expected=_SHAPE) from None
    return parts, _value(raw)


def _value(raw: str) -> Any:
    raw = raw.strip()
    try:
        table = tomllib.loads(f"value = {raw}")
    except (ValueError, RecursionError):
        return raw
    # More keys than one: the text held a line end. No key takes a date.
    if len(table) > 1 or isinstance(table["value"], datetime.date | datetime.time):
        return raw
    return table["value"]
