"""CUDA_VISIBLE_DEVICES: which boards the framework numbers, and in which order. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from escala.store.scrub import scrub
from escala.terms.errors import EscalaError

VARIABLE = "CUDA_VISIBLE_DEVICES"

_FORMS = {
    "number": re.compile(r"[+-]?[0-9]+", re.ASCII),
    "board": re.compile(r"GPU-[0-9A-Za-z-]*", re.ASCII),
    "slice": re.compile(r"MIG-[0-9A-Za-z/-]+", re.ASCII),
    # Written by SLURM for a job that was given no board.
    "end": re.compile(r"|NoDevFiles"),
}
_LONGEST_NUMBER = 9
_SHOWN = 60


def visible(value: str | None, boards: Sequence[str]) -> tuple[str, ...]:
    """UUIDs that the framework numbers 0, 1, ... under this value of the variable, None where it is not set.

    `boards` are the UUIDs of all boards in CUDA's own order. By the CUDA programming guide, "CUDA environment
    variables": entries are numbers, `GPU-` and enough of a UUID to tell it from the others, or one `MIG-` instance,
    which is returned as it stands; the first entry that is not valid ends the list. By what the driver does beyond
    that: all entries have the form of the first, and a board named twice leaves none.
    Raises EscalaError ENV-VISIBLE for an entry of no known form.
    """
    if value is None:
        return tuple(boards)
    found = list[str]()
    first: str | None = None
    for entry in (part.strip() for part in value.split(",")):
        form = next((name for name, pattern in _FORMS.items() if pattern.fullmatch(entry)), None)
        if form is None:
            raise _unknown(entry, value)
        if form == "slice" and not found:
            return (entry,)
        first = first or form
        board = _board(entry, form, boards) if form == first else None
        if board is None:
            break
        if board in found:
            return ()
        found.append(board)
    return tuple(found)


def plain(uuid: str) -> str:
    """A UUID without its prefix and in small letters, as two sources of it can be compared."""
    return uuid.lower().removeprefix("gpu-")


def _board(entry: str, form: str, boards: Sequence[str]) -> str | None:
    """The one board that an entry names, or None."""
    if form == "number":
        number = int(entry) if len(entry) <= _LONGEST_NUMBER else -1
        return boards[number] if 0 <= number < len(boards) else None
    if form == "board":
        alike = [board for board in boards if plain(board).startswith(plain(entry))]
        return alike[0] if len(alike) == 1 else None
    return None


def _unknown(entry: str, value: str) -> EscalaError:
    what = f"{_shown(entry)} names no board in any form that CUDA knows"
    if entry != value:
        what += f", in {_shown(value)}"
    return EscalaError(
        "ENV-VISIBLE",
        VARIABLE,
        what,
        expected="numbers, GPU-... or MIG-..., with commas between them",
        next_step="correct the variable, or set it to -1 for no board",
    )


def _shown(text: str) -> str:
    text = scrub(text)
    return f'"{text[:_SHOWN]}…"' if len(text) > _SHOWN else f'"{text}"'
