"""A report as JSON: everything in the summaries and the verdict, under their field names."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from msgspec import to_builtins

from escala.analyse.annex import NOTHING, Annex
from escala.analyse.row import Summary
from escala.analyse.verdict import Verdict

SCHEMA = 1
# Raw, these would steer a terminal that shows the file, or the eye; JSON can spell them as escapes.
_HIDDEN = re.compile("[\x7f-\x9f\xad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")


def write(summaries: Sequence[Summary], verdict: Verdict, annex: Annex = NOTHING) -> str:
    """`{"schema": 1, "verdict": {...}, "summaries": [...], "published": ..., "epochs": [...],
    "attributions": [...]}`.

    A figure that is no number is null, and so is `published` where the experiment has no published figures.
    """
    found = {"schema": SCHEMA, "verdict": verdict, "summaries": list(summaries), **to_builtins(annex, enc_hook=str)}
    return pretty(found)


def pretty(value: object) -> str:
    """Any data as JSON of several lines, with nothing in it that would steer a terminal."""
    return _shown(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2)) + "\n"


def compact(value: object) -> str:
    """The same on one line."""
    return _shown(msgspec.json.encode(value, enc_hook=str))


def _shown(text: bytes) -> str:
    return _HIDDEN.sub(lambda sign: f"\\u{ord(sign[0]):04x}", text.decode())
