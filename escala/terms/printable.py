"""Text that comes from files and from people, made safe for a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """`text` with every control character and stray byte written as an escape."""
    return "".join(sign if sign.isprintable() else _escape(ord(sign)) for sign in text)


def _escape(code: int) -> str:
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
