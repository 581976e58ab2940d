"""The data sets that escala reads or draws, and what can be said of one before a run."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping, Sequence

from escala.data import digits, mnist
from escala.data.base import Description, Request, Source, Split
from escala.data.paths import is_missing, named_path, path_error
from escala.data.survey import survey
from escala.terms.errors import EscalaError

__all__ = ["SETS", "Description", "Request", "Source", "Split", "describe", "first_found", "open_source"]

Finder = Callable[[str, Mapping[str, str]], Source | None]
"""Takes the name as asked for and the environment; None: the files are nowhere."""

SETS: dict[str, Finder] = {
    "mnist": mnist.find,
    "fashion-mnist": mnist.find,
    "synthetic": digits.find,
}
"""The named sets."""


def describe(request: Request, environ: Mapping[str, str]) -> Description:
    """What a data set holds, after every check of it: headers, lengths, labels, packing, split.

    Takes about a second for a set of 70,000 images, and a few MB whatever its size. Raises EscalaError DATA-*
    where the data are wrong, CFG-RANGE where the request does not fit them.
    """
    return survey(open_source(request.name, environ), request).description


def open_source(name: str, environ: Mapping[str, str]) -> Source:
    """The named set, or the folder at the path `name`. Raises EscalaError DATA-PATH where it is not to be had."""
    finder = _finder(name)
    if finder is None:
        folder = named_path(name)
        if is_missing(folder):
            known = f"expected the path of a folder, or one of {', '.join(SETS)}"
            raise path_error(folder, os.strerror(errno.ENOENT), expected=known)
        return mnist.in_folder(folder)
    source = finder(name, environ)
    if source is None:
        raise _nowhere([name], environ)
    return source


def first_found(names: Sequence[str], environ: Mapping[str, str]) -> str:
    """The first of `names`, named sets or paths, that is there; `synthetic` always is.

    Raises EscalaError DATA-PATH naming every place looked at where none is.
    """
    for name in names:
        finder = _finder(name)
        if finder(name, environ) if finder else not is_missing(named_path(name)):
            return name
    raise _nowhere(names, environ)


def _finder(name: str) -> Finder | None:
    # A colon begins the settings of a generated set.
    return SETS.get(name.partition(":")[0])


def _nowhere(names: Sequence[str], environ: Mapping[str, str]) -> EscalaError:
    looked = [
        place for name in names for place in (mnist.places(name, environ) if _finder(name) else [named_path(name)])
    ]
    return path_error(
        ", ".join(names),
        f"found in none of {', '.join(map(str, looked))}",
        expected="expected a folder with the four published IDX files, packed or not",
        next_step="point ESCALA_DATA at such a folder, or take the generated set `synthetic`",
    )
