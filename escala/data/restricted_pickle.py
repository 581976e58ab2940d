"""A pickle that holds plain values and arrays of whole numbers, read without running anything that it asks for.

A pickle is a program: it names functions and has them called. Here only the few names that arrays need are known, and
even these lead to stand-ins of this module, since numpy's own functions believe whatever state a pickle gives them.
Files of Python 2, and those of numpy before and after 2.0, are read alike.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import pickletools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from escala.data.paths import open_file
from escala.terms.errors import EscalaError

LARGEST_FILE = 2**30
"""Bytes; a longer file is refused, because it is read whole."""

_MOST_DIMENSIONS = 64
_MOST_A_BYTE = 10
"""Values that a value may hold, and bytes that calls may be given, for each byte of the file; without sharing it is
one value at most."""
_MOST_INSTRUCTIONS = 2_000_000
"""Those of the largest published batch, of 50,000 rows, are about a tenth of it. To look over as many takes some
15 s, and they make no more than some 0.5 GB of values."""
_LONGEST_LINE = 2**16
"""Bytes of a number that is written out, or of what should be in quotes and is not."""
_GROWS = ("APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS")
_CALLS = ("REDUCE", "BUILD", "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX")
_NAMES = (pickletools.pybytes_or_str, pickletools.pybytes, pickletools.pyunicode, pickletools.anyobject)
_MAKES_KEYS = frozenset(one.name for one in pickletools.opcodes if one.stack_after and one.stack_after[-1] in _NAMES)
_WHOLE_NUMBERS = re.compile(r"[iu][1248]")
_BYTE_ORDERS = ("<", ">", "|", "=")
_INTEGER = (int, np.integer)
_LONGEST_TOLD = 80
"""Characters of what a file names, and of an error that may quote it: it may name anything, a gigabyte long."""


class DamagedPickle(ValueError):
    """What the file holds is no pickle of plain values and arrays. The message is the reason."""


def load(path: Path) -> dict[str, object]:
    """The dictionary in a file, its keys as text; strings of Python 2 are bytes, arrays [as stored] are numpy's.

    Takes about three times the file's size in memory, and some 0.5 GB beside at most. Raises EscalaError DATA-PATH
    where it cannot be opened, SEC-PICKLE where it asks for anything but arrays, DamagedPickle where it is damaged or
    holds no dictionary.
    """
    with open_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST_FILE:
            raise DamagedPickle(f"has {size:,} bytes; at most {LARGEST_FILE:,} are read")
        data = file.read(size)
    try:
        _check_effort(data)
        found = _Reader(data, path).load()
    except (EscalaError, DamagedPickle):
        raise
    except Exception as error:
        # Whatever a damaged byte leads to: an empty stack, a key that cannot be hashed, memory without end.
        raise DamagedPickle(f"is no whole pickle: {_short(str(error) or type(error).__name__)}") from error
    if not isinstance(found, dict):
        raise DamagedPickle("holds no dictionary")
    return {_text(key): value.array if isinstance(value, _Array) else value for key, value in found.items()}


class _Lines(io.BytesIO):
    """The file for `pickletools`, whose errors hold the whole line that it cannot read, at four times the size."""

    def readline(self, size: int | None = -1, /) -> bytes:
        """Raises DamagedPickle for a long line that is no number, or no text between quotes, where one has to be."""
        line = super().readline(size)
        if len(line) <= _LONGEST_LINE:
            return line
        end = self.tell()
        self.seek(end - len(line) - 1)
        code = self.read(1)
        self.seek(end)
        quoted = line[:1] + line[-2:-1] in (b"''", b'""')
        if code == b"F" or (code == b"S" and not quoted):
            raise DamagedPickle("has a line that can be neither number nor text")
        return line


class _Reader(pickle.Unpickler):
    """Python's own reader, which asks `find_class` for every function that the file names."""

    def __init__(self, data: bytes, path: Path) -> None:
        # Names are wanted as they stand in the file, to be told in a refusal.
        super().__init__(io.BytesIO(data), fix_imports=False, encoding="bytes")
        self._path = path
        self._known = _stand_ins()

    def find_class(self, module: str, name: str, /) -> Any:
        """The stand-in for an admitted name. Raises EscalaError SEC-PICKLE for any other."""
        if (module, name) not in self._known:
            raise EscalaError(
                "SEC-PICKLE",
                str(self._path),
                f"asks for {_short(f'{module}.{name}')}, which could run anything: refused",
                expected="a published batch names numpy's arrays only",
                next_step="do not use this file; fetch the set again from its publisher",
            )
        return self._known[module, name]


def _stand_ins() -> dict[tuple[str, str], Callable[..., Any]]:
    """What the admitted names lead to. Made anew for each file: a pickle can hang attributes on a function."""

    def reconstruct(*_: object) -> _Array:
        return _Array()

    def array_type(*_: object) -> None:
        raise DamagedPickle("builds an array in a way that no published batch does")

    def number_type(name: object, *_: object) -> _NumberType:
        return _NumberType(_text(name))

    def encode(text: object, encoding: object = "", *_: object) -> bytes:
        if not isinstance(text, str) or _text(encoding) not in ("latin1", "latin-1"):
            raise DamagedPickle("holds bytes in an unknown encoding")
        return text.encode("latin1")

    return {
        ("numpy.core.multiarray", "_reconstruct"): reconstruct,
        ("numpy._core.multiarray", "_reconstruct"): reconstruct,
        ("numpy", "ndarray"): array_type,
        ("numpy", "dtype"): number_type,
        ("_codecs", "encode"): encode,
    }


class _NumberType:
    """Stands for numpy's type of numbers: `name` such as u1, and the order of its bytes."""

    __slots__ = ("_name", "_order")

    def __init__(self, name: str) -> None:
        if not _WHOLE_NUMBERS.fullmatch(name):
            raise DamagedPickle(f"holds an array of type {_short(name)!r}; whole numbers were expected")
        self._name = name
        self._order = "|"

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) < 2 or _text(state[1]) not in _BYTE_ORDERS:
            raise DamagedPickle("holds an array whose type is damaged")
        self._order = _text(state[1])

    def dtype(self) -> np.dtype[Any]:
        """The type itself."""
        return np.dtype(self._order + self._name)


class _Array:
    """Stands for numpy's array until its content comes, which is compared with the promised shape first."""

    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array: NDArray[Any] = np.zeros(0, np.uint8)

    def __setstate__(self, state: object) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise DamagedPickle("holds an array whose state is damaged")
        _, shape, kind, by_columns, content = state
        if isinstance(content, str):
            content = content.encode("latin1")
        if not isinstance(kind, _NumberType) or not isinstance(content, bytes):
            raise DamagedPickle("holds an array without a type or content")
        # Bounds on number and size: multiplying a million long numbers would take hours.
        if (
            not isinstance(shape, tuple)
            or len(shape) > _MOST_DIMENSIONS
            or not all(isinstance(size, _INTEGER) and 0 <= size <= LARGEST_FILE for size in shape)
        ):
            raise DamagedPickle("holds an array whose shape is damaged")
        promised = math.prod(shape) * kind.dtype().itemsize
        if len(content) != promised:
            raise DamagedPickle(f"holds an array of {len(content):,} bytes; its shape {shape} needs {promised:,}")
        self.array = np.frombuffer(content, kind.dtype()).reshape(shape, order="F" if by_columns else "C")


@dataclass(slots=True)
class _Value:
    """What a value is made of: `many` values, itself counted, with `size` bytes of text, each as often as it is held.

    `key`: to take it for a key is quick, as for a name, whose hash no file can foresee, or what a stand-in gives.
    `held`: others were made of it, and counted it as it was.
    """

    many: int = 0
    size: int = 0
    key: bool = False
    held: bool = False


def _check_effort(data: bytes) -> None:
    """Look over the file for what would cost the reader far more than its size.

    That is a cut; numbered places far outside the file, since Python's reader takes memory for all the places below
    the highest one (64 GB for a file of 20 bytes); more instructions than any batch needs, each of which may make a
    value of 64 times its size; values that hold one another so often that to look at all they
    hold lasts for hours (60 bytes suffice); one text that calls copy again and again; and keys of a dictionary, or
    elements of a set, that are no names: numbers can be chosen to be looked for among all that came before (hours
    for 30 MB), and the hash of a value within a value, a million deep, ends the process.
    """
    most, copied = _MOST_A_BYTE * len(data), 0
    # What lies on the reader's stack, with None for a mark; and the same by numbered place.
    stack = list[_Value | None]()
    places = dict[object, _Value | None]()
    for number, (code, argument, _) in enumerate(pickletools.genops(_Lines(data))):
        if number == _MOST_INSTRUCTIONS:
            raise DamagedPickle(f"has more than {_MOST_INSTRUCTIONS:,} instructions")
        if code.name == "MEMOIZE" or code.name.endswith("PUT"):
            if isinstance(argument, int) and not 0 <= argument <= len(data):
                raise DamagedPickle(
                    f"numbers a value {_short(f'{argument:,}')}, though it has {len(data):,} bytes only"
                )
            places[len(places) if argument is None else argument] = stack[-1]
            continue
        taken = _taken(stack, code)
        parts = [value or _Value() for value in taken]
        if not all(part.key for part in _keys(code.name, parts)):
            raise DamagedPickle("holds a key that is no name, which could be looked through again and again")
        if code.name in _CALLS:
            copied += sum(part.size for part in parts)
        if copied > most:
            raise DamagedPickle("has a text copied again and again")
        if code.name.endswith("GET"):
            value = places[argument] or _Value()
        elif code.name in _GROWS:
            value = parts.pop()
        else:
            # What is built goes on as what it was, which lies below what it is built of.
            value = _Value(1, key=parts[-1].key if code.name == "BUILD" else code.name in _MAKES_KEYS)
        for part in parts:
            part.held = True
        if code.name in _GROWS and value.held:
            raise DamagedPickle("adds to a value that others hold already, and so could hold itself again and again")
        value.many += sum(part.many for part in parts)
        value.size += sum(part.size for part in parts)
        value.size += len(argument) if isinstance(argument, str | bytes | bytearray) else 0
        if value.many > most:
            raise DamagedPickle("holds values that hold each other again and again")
        if code.name == "DUP":
            stack += [*taken, *taken]
        else:
            stack += [None if kind is pickletools.markobject else value for kind in code.stack_after]


def _keys(name: str, parts: list[_Value]) -> list[_Value]:
    """Of what an instruction of this name took, the last first, what has to be hashed."""
    if name in ("SETITEM", "SETITEMS", "DICT"):
        return parts[1::2]
    if name == "ADDITEMS":
        return parts[:-1]
    return parts if name == "FROZENSET" else []


def _taken(stack: list[_Value | None], code: pickletools.OpcodeInfo) -> list[_Value | None]:
    """What an instruction takes from the stack: down to the last mark, if it goes by marks, and what it names."""
    wanted = code.stack_before
    count = len(wanted)
    taken = list[_Value | None]()
    if pickletools.markobject in wanted:
        while (value := stack.pop()) is not None:
            taken.append(value)
        count = wanted.index(pickletools.markobject)
    return taken + [stack.pop() for _ in range(count)]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin1")
    if isinstance(value, str):
        return value
    raise DamagedPickle(f"holds a {type(value).__name__} where a name was expected")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TOLD else f"{text[: _LONGEST_TOLD - 1]}…"
