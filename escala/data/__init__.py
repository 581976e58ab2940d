"""The data sets that escala reads or draws, and what can be said of one before a run."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from escala.data import (
    cifar,
    digits,
    fish,
    hub,
    image_folder,
    imdb,
    mnist,
    parquet,
    plain_text,
    prepared_images,
    prose,
    questions,
    reviews,
    squad,
    textures,
)
from escala.data.base import Description, Form, Request, Source, Split
from escala.data.paths import is_missing, named_path, path_error, places
from escala.data.survey import survey
from escala.data.texts import TextSource
from escala.terms.errors import EscalaError
from escala.terms.words import did_you_mean, nearest

__all__ = [
    "SETS",
    "Description",
    "Form",
    "Request",
    "Source",
    "Split",
    "describe",
    "find",
    "first_found",
    "open_source",
]

Finder = Callable[[str, Mapping[str, str]], Source | TextSource | None]
"""Takes the name as asked for and the environment; None: the files are nowhere."""
Recogniser = Callable[[Path], Source | TextSource | None]
"""Takes a file or folder; None: it holds something else."""

SETS: dict[str, Finder] = {
    "mnist": mnist.find,
    "fashion-mnist": mnist.find,
    "cifar10": cifar.find,
    "cifar100": cifar.find,
    "imdb": imdb.find,
    "wikitext-103": plain_text.find_wikitext,
    "wikitext-2": plain_text.find_wikitext,
    "fortunes": plain_text.find_fortunes,
    "wordnet": plain_text.find_wordnet,
    "squad": squad.find,
    "synthetic": digits.find,
    "synthetic-fish": fish.find,
    "synthetic-cifar10": textures.find,
    "synthetic-cifar100": textures.find,
    "synthetic-imdb": reviews.find,
    "synthetic-wikitext": prose.find,
    "synthetic-squad": questions.find,
}
"""The named sets."""

RECOGNISERS: tuple[Recogniser, ...] = (
    parquet.recognise,
    cifar.recognise,
    prepared_images.recognise,
    image_folder.recognise,
    imdb.recognise,
    plain_text.recognise_wikitext,
    squad.recognise,
    plain_text.recognise,
)
"""Asked in this order what a path holds; where none knows it, it is read as a folder of the four IDX files."""


def describe(request: Request, environ: Mapping[str, str], cache: Path, say: Callable[[str], None]) -> Description:
    """What a data set holds, after every check of it: headers, lengths, labels, packing, split.

    Takes about a second for a set of 70,000 images, and a few MB whatever its size; texts are cut into tokens the
    first time, into `cache`. Raises EscalaError DATA-* where the data are wrong, CFG-RANGE where the request does
    not fit them.
    """
    return survey(open_source(request.name, environ, request.form, cache, say), request).description


def open_source(name: str, environ: Mapping[str, str], form: Form, cache: Path, say: Callable[[str], None]) -> Source:
    """The named set, or what lies at the path `name`, as rows of the form that a workload wants.

    Raises EscalaError DATA-PATH where it is not to be had, DATA-KIND where it is of another kind.
    """
    found = find(name, environ)
    kind = found.facts().kind
    if kind != form.kind:
        raise EscalaError(
            "DATA-KIND",
            name,
            f"holds {kind}",
            expected=f"the workload takes {form.kind}",
            next_step="name other data or another workload; escala data list shows both",
        )
    if isinstance(found, Source):
        return found
    # Brings a tokeniser with it, which images do not need.
    from escala.data.encode import encoded

    return encoded(found, form, cache, say, environ)


def find(name: str, environ: Mapping[str, str]) -> Source | TextSource:
    """The named set, or what lies at the path `name`, as published. Raises EscalaError DATA-PATH, DATA-*."""
    finder = _finder(name)
    if finder is not None:
        found = finder(name, environ)
        if found is None:
            raise _nowhere([name], environ)
        return found
    path = named_path(name)
    if is_missing(path):
        known = f"expected the path of a file or folder, or one of {', '.join(SETS)}"
        raise path_error(path, os.strerror(errno.ENOENT), expected=known, next_step=did_you_mean(_meant(name)))
    for recognise in RECOGNISERS:
        if (source := recognise(path)) is not None:
            return source
    return mnist.in_folder(path)


def first_found(names: Sequence[str], environ: Mapping[str, str]) -> str:
    """The first of `names`, named sets or paths, that is there; a generated set always is.

    Raises EscalaError DATA-PATH naming every place looked at where none is.
    """
    for name in names:
        finder = _finder(name)
        if finder(name, environ) if finder else not is_missing(named_path(name)):
            return name
    raise _nowhere(names, environ)


def _finder(name: str) -> Finder | None:
    # A colon begins the settings of a generated set.
    if name.startswith(hub.PREFIX):
        return hub.find
    base = name.partition(":")[0]
    # Fish alone are drawn in any resolution, which follows an @.
    return fish.find if base.startswith("synthetic-fish@") else SETS.get(base)


def _nowhere(names: Sequence[str], environ: Mapping[str, str]) -> EscalaError:
    meant = next((near for name in names if (near := _meant(name))), "")
    looked = [place for name in names for place in (places(name, environ) if _finder(name) else [named_path(name)])]
    return path_error(
        ", ".join(names),
        f"found in none of {', '.join(map(str, looked))}",
        expected="expected the files as published, packed or not",
        next_step=did_you_mean(meant)
        or "point ESCALA_DATA at the folder that holds them, see escala data get, or take a generated set",
    )


def _meant(name: str) -> str:
    """The named set that a word was likely meant to be, with the settings that follow it; none for a path."""
    base, colon, settings = name.partition(":")
    near = "" if _finder(name) or os.sep in name else nearest(base, SETS)
    return f"{near}{colon}{settings}" if near else ""
