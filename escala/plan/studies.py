"""The experiments that ship with escala."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import NamedTuple

from escala.plan.words import shown
from escala.terms.errors import EscalaError
from escala.terms.words import did_you_mean, nearest

_FOLDER = files("escala.studies")
_ENDING = ".toml"


class StudySummary(NamedTuple):
    """A study's name, its title and what it is about."""

    name: str
    title: str
    about: str


def names() -> tuple[str, ...]:
    """Names of the studies, in order of the alphabet."""
    found = (entry.name for entry in _FOLDER.iterdir())
    return tuple(sorted(name.removesuffix(_ENDING) for name in found if name.endswith(_ENDING)))


def text(name: str) -> str:
    """The TOML of a study. Raises `CFG-FILE` for a name that is none."""
    known = names()
    # A name is looked up, never made into a path: it may come from a person, and hold dots and slashes.
    if name not in known:
        raise EscalaError(
            "CFG-FILE",
            f"study {shown(name)}",
            "there is no such study",
            expected=f"studies: {', '.join(known)}",
            next_step=did_you_mean(nearest(name, known)),
        )
    return _FOLDER.joinpath(name + _ENDING).read_text(encoding="utf-8")


def summaries() -> tuple[StudySummary, ...]:
    """Every study with its title and what it is about."""
    tables = ((name, tomllib.loads(text(name))) for name in names())
    return tuple(
        StudySummary(name, str(table.get("title", "")), str(table.get("about", "")).strip()) for name, table in tables
    )
