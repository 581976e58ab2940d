"""How much of a peer's file its user would have to write: what stands between marks.

Signatures of functions that are there only for the sake of types and hooks stay outside the marks.
"""

from __future__ import annotations

from pathlib import Path

BEGINS = "# user code begins"
ENDS = "# user code ends"


def user_lines(source: str) -> int:
    """Lines between the marks that hold code: no blank ones, no comments, none that only call `edges`.

    Raises ValueError where nothing is marked, or a mark does not follow one of the other kind.
    """
    found, inside = 0, False
    for line in (line.strip() for line in source.splitlines()):
        if line in (BEGINS, ENDS):
            if inside == (line == BEGINS):
                raise ValueError(f"{line!r} stands where the other mark should")
            inside = not inside
        elif inside and line and not line.startswith(("#", "edges.")):
            found += 1
    if inside or not found:
        raise ValueError("the user's part is not marked to its end" if inside else "no user's part is marked")
    return found


def user_lines_of(path: Path) -> int:
    """`user_lines` of a file."""
    return user_lines(path.read_text(encoding="utf-8"))
