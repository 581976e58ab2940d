"""A part of a report below its tables."""

from __future__ import annotations

from msgspec import Struct

from escala.report.column import Column


class Section(Struct, frozen=True):
    """A heading, a table, remarks as name and text, and closing lines. Every text in it is safe to show as it is."""

    heading: str
    columns: tuple[Column, ...]
    remarks: tuple[tuple[str, str], ...] = ()
    lines: tuple[str, ...] = ()
