"""What the named sets are, and where each is looked for: said without opening one and without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from escala.data import SETS, Finder
from escala.data.base import Kind
from escala.data.paths import SYSTEM_FOLDER
from escala.data.published import PUBLISHED
from escala.terms.errors import EscalaError

GENERATED = "synthetic"
"""How the names of generated sets begin."""


@dataclass(frozen=True)
class Entry:
    """What a named set is; `workloads` are those made for its rows."""

    kind: Kind
    about: str
    workloads: tuple[str, ...]


_GREY_28 = ("mlp", "cnn-small")

ENTRIES: dict[str, Entry] = {
    "mnist": Entry("images", "handwritten digits, 28 x 28 grey, 10 classes", _GREY_28),
    "fashion-mnist": Entry("images", "pieces of clothing, 28 x 28 grey, 10 classes", _GREY_28),
    "cifar10": Entry("images", "photographs, 3 x 32 x 32, 10 classes", ("cnn-medium",)),
    "cifar100": Entry("images", "photographs, 3 x 32 x 32, 100 classes", ("resnet18",)),
    "imdb": Entry("labelled text", "film reviews, for or against", ("transformer-small",)),
    "wikitext-103": Entry("text", "Wikipedia's good articles, 103 million words", ("transformer-lm",)),
    "wikitext-2": Entry("text", "Wikipedia's good articles, 2 million words", ("transformer-lm",)),
    "fortunes": Entry("text", "sayings, from Debian's package fortunes", ("transformer-lm",)),
    "wordnet": Entry("text", "definitions of English words, from Debian's package wordnet-base", ("transformer-lm",)),
    "squad": Entry("questions", "questions on Wikipedia with answers in the text, version 1.1", ("bert-qa",)),
    "synthetic": Entry("images", "drawn digits in the form of MNIST", _GREY_28),
    "synthetic-fish": Entry("images", "drawn silhouettes of 9 species, 148 x 197 grey", ("resnet34",)),
    "synthetic-cifar10": Entry("images", "drawn textures in the form of CIFAR-10", ("cnn-medium",)),
    "synthetic-cifar100": Entry("images", "drawn textures in the form of CIFAR-100", ("resnet18",)),
    "synthetic-imdb": Entry("labelled text", "made-up reviews, for or against", ("transformer-small",)),
    "synthetic-wikitext": Entry("text", "made-up text with long-range structure", ("transformer-lm",)),
    "synthetic-squad": Entry("questions", "made-up questions with answers in the text", ("bert-qa",)),
}
"""Every set of `escala.data.SETS`; a test holds the two together."""


@dataclass(frozen=True)
class Listed:
    """A named set as this machine has it.

    `found` is where, as records tell it, or the generator with its settings; None: nowhere. `fault` is what is
    wrong with what lies there. `looked_in` are the places, in order, `can_get` whether `escala data get` knows it.
    """

    name: str
    kind: str
    about: str
    workloads: tuple[str, ...]
    generated: bool
    found: str | None
    fault: str | None
    looked_in: tuple[str, ...]
    can_get: bool


def listed(environ: Mapping[str, str]) -> tuple[Listed, ...]:
    """Every named set. Reads headers at most. Raises EscalaError DATA-PATH where `$ESCALA_DATA` is no folder."""
    return tuple(_listed(name, finder, environ) for name, finder in SETS.items())


def told_places(name: str) -> tuple[str, ...]:
    """Where a named set is looked for, as records tell it."""
    return (f"$ESCALA_DATA/{name}", "$ESCALA_DATA", str(SYSTEM_FOLDER / name))


def _listed(name: str, finder: Finder, environ: Mapping[str, str]) -> Listed:
    entry = ENTRIES.get(name)
    generated = name.startswith(GENERATED)
    # Outside the guard below: a wrong $ESCALA_DATA is wrong for every set, and meant for all of them.
    source = finder(name, environ)
    found, fault, kind = None, None, entry.kind if entry else ""
    if source is not None:
        try:
            facts = source.facts()
            found, kind = facts.where, facts.kind
        except EscalaError as error:
            fault = f"{error.where}: {error.what}"
    return Listed(
        name,
        kind,
        entry.about if entry else "",
        entry.workloads if entry else (),
        generated,
        found,
        fault,
        () if generated else told_places(name),
        name in PUBLISHED,
    )
