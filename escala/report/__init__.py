"""Summaries and a verdict as text. Writers return text; only the command line writes files."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from escala.analyse.annex import Annex
    from escala.analyse.row import Summary
    from escala.analyse.verdict import Verdict


class Writer(Protocol):
    """Takes rows, what was drawn from them, and what is shown beside them; returns the whole text."""

    def __call__(self, summaries: Sequence[Summary], verdict: Verdict, annex: Annex | None = None, /) -> str: ...


def _late(module: str) -> Writer:
    # Each writer's libraries are loaded when it writes, so that choosing one costs nothing.
    def write(summaries: Sequence[Summary], verdict: Verdict, annex: Annex | None = None) -> str:
        more = () if annex is None else (annex,)
        text: str = import_module(f"escala.report.{module}").write(summaries, verdict, *more)
        return text

    return write


WRITERS: dict[str, Writer] = {
    "terminal": _late("terminal"),
    "markdown": _late("markdown"),
    "csv": _late("csv_text"),
    "json": _late("json_text"),
    "html": _late("html.page"),
}
FOR_PEOPLE = ("terminal", "markdown", "html")
"""Those that are told in the language that is spoken; the others are for programs."""
