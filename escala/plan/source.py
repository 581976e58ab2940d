"""The text of an experiment and the plain tables in it; nothing is ever built from what a file says."""

from __future__ import annotations

import os
import re
import tomllib
from typing import Any

from escala.plan import studies
from escala.plan.locate import DEEPEST, Places
from escala.plan.words import cut, dotted
from escala.terms.errors import EscalaError
from escala.terms.printable import printable
from escala.terms.words import did_you_mean, nearest

LARGEST_FILE = 2**20
"""Bytes. A written experiment has a few thousand; /dev/zero has no end."""

_YAML = (".yaml", ".yml")
_PYTHON_TAG = re.compile(r"(?:^|[\s:,\[{-])(!!py\S*|!?<?tag:yaml\.org,2002:py\S*)")
_PLACE_IN_MESSAGE = re.compile(r"(.*) \(at (?:line (\d+), column (\d+)|end of document)\)", re.DOTALL)
# How the standard reader's messages about a name given twice begin.
_GIVEN_TWICE = ("Cannot ", "Duplicate ")


def text_of(source: str) -> tuple[str, str]:
    """Text of the TOML file or the study that `source` names, and how error lines call it.

    A path has a slash or ends with `.toml`; any other word is a study first.
    Raises `CFG-FILE` where it cannot be read, and `CFG-TAG` or `CFG-SYNTAX` where it is YAML.
    """
    looks_like_path = os.sep in source or source.endswith((".toml", *_YAML))
    if not looks_like_path and source in studies.names():
        return studies.text(source), f"study {source}"
    where = printable(source) or "experiment"
    text = _decoded(_bytes(source, where), where)
    if source.endswith(_YAML):
        raise _yaml(text, where)
    return text, where


def tables_of(text: str, where: str, places: Places) -> dict[str, Any]:
    """The tables in a TOML text. Raises `CFG-SYNTAX`, `CFG-DUP`, or `CFG-TAG` where it is YAML after all."""
    if places.deep is not None:
        # Left to itself, the standard reader needs gigabytes for a key of a hundred thousand parts.
        what = "tables or lists are nested too deeply"
        raise EscalaError("CFG-SYNTAX", f"{where}:{places.deep}", what, expected=f"{DEEPEST} at most")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _refusal(str(error), text, where, places) from None
    except ValueError:
        raise EscalaError("CFG-SYNTAX", where, "a number has too many digits") from None


def _bytes(source: str, where: str) -> bytes:
    try:
        with open(source, "rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except (FileNotFoundError, NotADirectoryError):
        raise _no_such_file(source, where) from None
    except IsADirectoryError:
        what = "this is a folder"
        raise EscalaError("CFG-FILE", where, what, expected="a TOML file or the name of a study") from None
    except OSError as error:
        raise EscalaError("CFG-FILE", where, f"cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise EscalaError("CFG-FILE", where, "this is no file name") from None
    if len(data) > LARGEST_FILE:
        raise EscalaError("CFG-FILE", where, "this is too large for an experiment", expected="1 MiB at most")
    return data


def _no_such_file(source: str, where: str) -> EscalaError:
    known = studies.names()
    stem = os.path.splitext(os.path.basename(source))[0]
    return EscalaError(
        "CFG-FILE",
        where,
        "there is no such file and no study of that name",
        expected=f"studies: {', '.join(known)}",
        next_step=did_you_mean(nearest(stem, known)),
    )


def _decoded(data: bytes, where: str) -> str:
    try:
        # A byte order mark is no part of the text, whatever editor put it there.
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{data[error.start]:02X} at offset {error.start} is not UTF-8"
        raise EscalaError("CFG-FILE", f"{where}:{line}", what, next_step="save the file as UTF-8") from None


def _refusal(message: str, text: str, where: str, places: Places) -> EscalaError:
    """What the standard reader complains about, as an error of ours."""
    if _tag(text):
        return _yaml(text, where)
    match = _PLACE_IN_MESSAGE.fullmatch(message)
    what = match[1] if match else message
    if match and match[2]:
        line, column = int(match[2]), int(match[3])
    else:
        line, column = text.count("\n") + 1, len(text) - text.rfind("\n")
    start = places.statement(line)
    twice = places.twice
    if twice and places.statement(twice.second) == start:
        return EscalaError(
            "CFG-DUP",
            f"{where}:{twice.second}",
            f"{dotted(twice.path)} is given twice",
            expected=f"first on line {twice.first}",
            next_step="keep one of the two",
        )
    if what.startswith(_GIVEN_TWICE):
        return EscalaError("CFG-DUP", f"{where}:{start}", "this key or table was already given in another form")
    begun = f"in what begins on line {start}" if start != line else ""
    return EscalaError("CFG-SYNTAX", f"{where}:{line}:{column}", printable(what), expected=begun)


def _yaml(text: str, where: str) -> EscalaError:
    """The error for a YAML file. Its text is only searched."""
    found = _tag(text)
    if found is None:
        step = "write it as TOML, such as [train] and batch = 64"
        return EscalaError("CFG-SYNTAX", where, "this is YAML", expected="experiments are TOML", next_step=step)
    line, tag = found
    return EscalaError(
        "CFG-TAG",
        f"{where}:{line}",
        f"the tag {cut(tag)} asks for code to be run",
        expected="experiments are TOML and hold data only",
        next_step="nothing in the file was used; ask where it came from",
    )


def _tag(text: str) -> tuple[int, str] | None:
    """Line and wording of the first YAML tag that would build a Python object."""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("#") and (found := _PYTHON_TAG.search(line)):
            return number, found[1]
    return None
