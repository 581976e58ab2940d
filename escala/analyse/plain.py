"""Names and reasons come from files and from other people's programs: what of them may reach a screen."""

from __future__ import annotations

import re
import unicodedata

LONGEST_NAME = 40
LONGEST_REASON = 240

# A whole escape sequence goes, or its tail (`[31m`, a window title) would stay as litter.
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])|\x9b[0-?]*[ -/]*[@-~]")
# Control, format (direction overrides, zero-width signs), surrogate, line and paragraph separators.
_HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}

_ASKED = re.compile(r"Tried to allocate [\d.]+ \w+(?=\. GPU )")
_ALLOWED = re.compile(r"[\d.]+ \w+ allowed")


def plain(text: object, longest: int | None = None) -> str:
    """`text` on one line with nothing in it that a terminal or a reader would obey.

    Longer than `longest` characters, its middle is left out: names often differ at their ends.
    """
    found = _ESCAPES.sub("", str(text))
    if not found.isascii() or not found.isprintable():
        shown = (" " if sign.isspace() else sign for sign in found)
        found = "".join(sign for sign in shown if unicodedata.category(sign) not in _HIDDEN)
    found = " ".join(found.split())
    if longest is not None and len(found) > longest:
        head = (longest - 1) * 2 // 3
        found = f"{found[:head]}…{found[len(found) - (longest - 1 - head) :]}"
    return found


def reason_text(reason: str | None) -> str:
    """Why a run did not come to its end, as `plain`; records have more.

    Of torch's account of a card that ran out of memory only what was asked for and allowed, since tables tell peaks.
    """
    told = reason or ""
    if asked := _ASKED.search(told):
        allowed = _ALLOWED.search(told, asked.end())
        told = told[: asked.end()] + (f"; {allowed[0]}" if allowed else "")
    return plain(told, LONGEST_REASON)
