"""Where each key of a TOML text stands, so that an error can name the line.

The standard reader gives values without positions. This one gives positions without values. It takes
whatever the standard reader takes and a little more, and stops where it no longer follows: a key it has
not seen is then looked up by its table, so that a line is left out rather than guessed.
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_right
from typing import NamedTuple

from msgspec import Struct, field

Path = tuple[str | int, ...]
"""Keys from the root down; a number is the position in a list."""

DEEPEST = 32
"""Longest path. The standard reader needs memory that grows with the square of it."""

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_END_OF_LINE = re.compile(r"[ \t]*(?:#[^\n]*)?(?:\r?\n|\Z)")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_SCALAR = re.compile(r"[^,\]}#\n]+")
_KEY_STRING = re.compile(r'"(?:\\.|[^"\\\n])*"|' r"'[^'\n]*'")
# A long string ends at its first three quotes, and up to two more in front of them are still its text.
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}' r"|'''.*?'{3,5}" rf"|{_KEY_STRING.pattern}",
    re.DOTALL,
)


class Twice(NamedTuple):
    """A key or table that is written a second time."""

    path: Path
    first: int
    second: int


class Places(Struct, frozen=True):
    """Line numbers of a text, counted from 1.

    `lines` of every path seen, `starts` of every statement, `twice` the first key written again,
    `deep` the line where a path grew longer than `DEEPEST` (nothing after it was read).
    """

    lines: dict[Path, int]
    starts: tuple[int, ...]
    twice: Twice | None
    deep: int | None

    def line(self, path: Path) -> int | None:
        """Line of `path`, else of the nearest table around it that is written down."""
        for end in range(len(path), 0, -1):
            if path[:end] in self.lines:
                return self.lines[path[:end]]
        return None

    def statement(self, line: int) -> int:
        """Line where the statement that holds `line` begins."""
        index = bisect_right(self.starts, line)
        return self.starts[index - 1] if index else line


class _Stop(Exception):
    """The text is not understood from here on."""


class _Deep(Exception):
    """A path is longer than anybody writes by hand."""


class _Scan(Struct):
    """The text, and what was found in it so far."""

    text: str
    newlines: list[int]
    lines: dict[Path, int] = field(default_factory=dict)
    written: dict[Path, int] = field(default_factory=dict)
    tables: dict[Path, int] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    twice: Twice | None = None
    deep: int | None = None

    def line_at(self, position: int) -> int:
        return bisect_right(self.newlines, position) + 1

    def mark(self, path: Path, position: int) -> None:
        """Note the first line of `path`."""
        if len(path) > DEEPEST:
            self.deep = self.line_at(position)
            raise _Deep
        self.lines.setdefault(path, self.line_at(position))

    def write(self, path: Path, position: int) -> None:
        """Note a key or table header that may be written only once."""
        self.mark(path, position)
        line = self.line_at(position)
        first = self.written.setdefault(path, position)
        if self.twice is None and first != position:
            self.twice = Twice(path, self.line_at(first), line)


def scan(text: str) -> Places:
    """Find the line of every key in `text`, which may be broken TOML. Never raises."""
    found = _Scan(text, [match.start() for match in re.finditer("\n", text)])
    position, table = 0, Path()
    try:
        while (position := _skip(_BLANK, text, position)) < len(text):
            found.starts.append(found.line_at(position))
            position, table = _statement(found, position, table)
    except (_Stop, _Deep):
        pass
    return Places(found.lines, tuple(found.starts), found.twice, found.deep)


def _statement(found: _Scan, position: int, table: Path) -> tuple[int, Path]:
    """Read a table header or a key with its value. Gives where it ends and the table that is now open."""
    text, start = found.text, position
    if text.startswith("[[", position):
        parts, position = _key(found, position + 2)
        position = _expect(text, position, "]]")
        path = (*_opened(found, parts[:-1]), parts[-1])
        count = found.tables.get(path, 0)
        found.tables[path] = count + 1
        table = (*path, count)
        _mark_all(found, path, start)
        found.mark(table, start)
    elif text.startswith("[", position):
        parts, position = _key(found, position + 1)
        position = _expect(text, position, "]")
        table = (*_opened(found, parts[:-1]), parts[-1])
        _mark_all(found, table, start)
        found.write(table, start)
    else:
        position = _assignment(found, position, table)
    end = _END_OF_LINE.match(text, position)
    if end is None:
        raise _Stop
    return end.end(), table


def _assignment(found: _Scan, position: int, table: Path) -> int:
    """Read `key = value` in `table`; gives where the value ends."""
    start = position
    parts, position = _key(found, position)
    position = _expect(found.text, position, "=")
    path = (*table, *parts)
    _mark_all(found, path, start)
    found.write(path, start)
    return _value(found, _skip(_SPACE, found.text, position), path)


def _value(found: _Scan, position: int, path: Path) -> int:
    """Read a value; gives where it ends. Marks the items of lists and the keys of inline tables."""
    text = found.text
    if text.startswith("[", position):
        position = _skip(_BLANK, text, position + 1)
        count = 0
        while not text.startswith("]", position):
            item = (*path, count)
            found.mark(item, position)
            position = _next(text, _value(found, position, item), "]")
            count += 1
        return position + 1
    if text.startswith("{", position):
        position = _skip(_BLANK, text, position + 1)
        while not text.startswith("}", position):
            position = _next(text, _assignment(found, position, path), "}")
        return position + 1
    match = (_STRING if text.startswith(('"', "'"), position) else _SCALAR).match(text, position)
    if match is None:
        raise _Stop
    return match.end()


def _next(text: str, position: int, close: str) -> int:
    """Where the next item, or the closing bracket, begins."""
    position = _skip(_BLANK, text, position)
    if text.startswith(",", position):
        return _skip(_BLANK, text, position + 1)
    if text.startswith(close, position):
        return position
    raise _Stop


def _key(found: _Scan, position: int) -> tuple[tuple[str, ...], int]:
    """Read a bare, quoted or dotted key; gives its parts and where it ends."""
    text = found.text
    parts: list[str] = []
    while True:
        position = _skip(_SPACE, text, position)
        match = _BARE.match(text, position) or _KEY_STRING.match(text, position)
        if match is None:
            raise _Stop
        if len(parts) == DEEPEST:
            found.deep = found.line_at(position)
            raise _Deep
        try:
            parts.append(unquoted(match.group()))
        except ValueError:
            raise _Stop from None
        position = _skip(_SPACE, text, match.end())
        if not text.startswith(".", position):
            return tuple(parts), position
        position += 1


def unquoted(part: str) -> str:
    """The key that a bare or quoted part of a dotted key stands for. Raises ValueError for a bad escape."""
    if not part.startswith(('"', "'")):
        return part
    if "\\" not in part or part.startswith("'"):
        return part[1:-1]
    return next(iter(tomllib.loads(f"{part} = 0")))


def _opened(found: _Scan, parts: tuple[str, ...]) -> Path:
    """Where `parts` lead when every array of tables stands for its last table, as in a header."""
    path = Path()
    for part in parts:
        path = (*path, part)
        if path in found.tables:
            path = (*path, found.tables[path] - 1)
    return path


def _mark_all(found: _Scan, path: Path, position: int) -> None:
    """Mark `path` and the tables around it that it brings into being."""
    for end in range(1, len(path) + 1):
        found.mark(path[:end], position)


def _expect(text: str, position: int, token: str) -> int:
    if not text.startswith(token, position):
        raise _Stop
    return position + len(token)


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return match.end() if match else position
