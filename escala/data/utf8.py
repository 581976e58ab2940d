"""Text files as text: UTF-8 always, whatever the system's own encoding, and no byte changed or left out.

A byte that is no UTF-8 is an error that names its place. A mark of UTF-8 in front is no text and is left out. Lines
end with a line feed, a carriage return or both, as in old files, and keep their ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from escala.data.paths import open_file
from escala.terms.errors import EscalaError

LONGEST_LINE = 10_000_000
"""Bytes; a longer one is no line of text, and would be held in memory whole."""

_AT_ONCE = 1 << 20
_MARK = b"\xef\xbb\xbf"
# Those of four bytes first: the little one begins like one of two.
_OTHER_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_END = re.compile(rb"\r\n|\r|\n")


def lines(path: Path) -> Iterator[str]:
    """The lines of a file with their ends, in bounded memory.

    Raises EscalaError DATA-PATH where it is no readable file, DATA-EMPTY where it holds nothing, DATA-ENC with byte
    offset and line (from 1) for what is no UTF-8, and for a line above `LONGEST_LINE`.
    """
    place, line, rest = 0, 1, b""
    with open_file(path) as file:
        chunk = file.read(_AT_ONCE)
        if chunk.startswith(_MARK):
            place = len(_MARK)
        chunk = chunk[place:]
        if not chunk:
            raise EscalaError("DATA-EMPTY", str(path), "holds no text", next_step="remove it or name another")
        while chunk:
            data = rest + chunk
            whole = _whole_lines(data)
            ended = decoded(data[:whole], path, place, line)
            for text in _LINE.findall(ended):
                # A line within a chunk is short; only the first may have come in from before it.
                if len(rest) and len(text.encode()) > LONGEST_LINE:
                    raise _too_long(path, place, line)
                rest = b""
                line += 1
                yield text
            rest, place = data[whole:], place + whole
            if len(rest) > LONGEST_LINE:
                raise _too_long(path, place, line)
            chunk = file.read(_AT_ONCE)
    yield from _LINE.findall(decoded(rest, path, place, line))


def decoded(data: bytes, path: Path, place: int = 0, line: int = 1) -> str:
    """`data`, which stands at byte `place` in line `line` of a file, as text. Raises EscalaError DATA-ENC."""
    other = next((told for mark, told in _OTHER_MARKS.items() if data.startswith(mark)), None)
    if other and not place:
        raise _no_utf8(path, 0, 1, f"begins with the mark of {other}", other)
    zero = data.find(b"\0")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if zero < 0 or error.start < zero:
            line += len(_END.findall(data[: error.start]))
            what = f"0x{data[error.start]:02X} is no UTF-8 there"
            raise _no_utf8(path, place + error.start, line, what, "WINDOWS-1252") from error
    if zero >= 0:
        line += len(_END.findall(data[:zero]))
        # Of a plain letter the upper byte is zero, and in the big one it comes first.
        perhaps = "UTF-16LE" if (place + zero) % 2 else "UTF-16BE"
        raise _no_utf8(path, place + zero, line, "a zero byte, which no text has; perhaps UTF-16", perhaps)
    return text


def _whole_lines(data: bytes) -> int:
    """How many bytes of `data` are lines that have certainly ended: a line feed may follow the last return."""
    return 1 + max(data.rfind(b"\n"), data.rfind(b"\r", 0, len(data) - 1))


def _no_utf8(path: Path, place: int, line: int, what: str, perhaps: str) -> EscalaError:
    return EscalaError(
        "DATA-ENC",
        f"{path}, byte {place}, line {line}",
        what,
        expected="expected UTF-8",
        next_step=f"convert it with `iconv -f {perhaps} -t UTF-8 FILE > NEW`; -f names the encoding that it is in",
    )


def _too_long(path: Path, place: int, line: int) -> EscalaError:
    return EscalaError(
        "DATA-ENC",
        f"{path}, byte {place}, line {line}",
        f"a line of more than {LONGEST_LINE:,} bytes begins there",
        expected="expected text in lines",
        next_step="break it into lines, or name a file of text",
    )
