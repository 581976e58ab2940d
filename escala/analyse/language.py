"""The language that a report is told in.

A text is marked where it stands: `say("{count} of {runs}", ...)` tells it now, `marked("Energy")` only marks what a
table holds until it is told. English is what stands in the code; every other language is a catalogue of these texts.

Texts come into being at the leaves: a rule of doubts, a cell of a table, the axis of a chart. The language is
therefore bound around the whole of a report, by `speaking`, and not handed through every shape between: a call that
left it out would be English in the middle of a Spanish page, and nothing would notice. The binding is a context
variable: it ends with its `with`, and no other thread sees it. Analysis that is not told to anybody, as for JSON,
stays outside of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.resources import files
from types import MappingProxyType

import msgspec
from msgspec import Struct

from escala.terms.errors import EscalaError

LANGUAGES = ("en", "es")
_NONE: Mapping[str, str] = MappingProxyType({})


class Words(Struct, frozen=True):
    """One language: what each English text is in it, and both numbers of each noun that is counted.

    What is not in it is told in English.
    """

    code: str
    texts: Mapping[str, str] = _NONE
    nouns: Mapping[str, tuple[str, str]] = MappingProxyType({})


ENGLISH = Words("en")
_SPOKEN: ContextVar[Words] = ContextVar("spoken", default=ENGLISH)


class _Catalogue(Struct, frozen=True, forbid_unknown_fields=True):
    texts: dict[str, str]
    nouns: dict[str, tuple[str, str]]


@cache
def words_of(code: str) -> Words:
    """The language of a code. Raises `CFG-VALUE` for one that there is not."""
    if code not in LANGUAGES:
        known = ", ".join(LANGUAGES)
        raise EscalaError("CFG-VALUE", "--lang", f"there is no language {code!r}", expected=f"one of {known}")
    if code == ENGLISH.code:
        return ENGLISH
    found = msgspec.toml.decode(files("escala.analyse").joinpath(f"{code}.toml").read_bytes(), type=_Catalogue)
    return Words(code, MappingProxyType(found.texts), MappingProxyType(found.nouns))


@contextmanager
def speaking(words: Words) -> Iterator[None]:
    """Tells everything within in this language."""
    before = _SPOKEN.set(words)
    try:
        yield
    finally:
        _SPOKEN.reset(before)


def language() -> str:
    """The code of the language that is spoken here."""
    return _SPOKEN.get().code


def say(text: str, /, **parts: object) -> str:
    """A marked text in the language spoken here, `{name}` in it replaced by the part of that name."""
    told = _SPOKEN.get().texts.get(text, text)
    return told.format(**parts) if parts else told


def marked(text: str) -> str:
    """The text itself, which is told later by `say`: in a table that is made when the module is read."""
    return text


def noun(one: str, *, plural: bool, several: str = "") -> str:
    """`run` or `runs`; `several` where the plural is not made by an s."""
    found = _SPOKEN.get().nouns.get(one)
    if found is not None:
        return found[plural]
    return (several or f"{one}s") if plural else one
