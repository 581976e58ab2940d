"""What verbs show and tell."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from escala.terms.errors import EscalaError

_CHARTS = (".svg", ".png", ".pdf")
_BY_ENDING = {
    ".md": "markdown",
    ".csv": "csv",
    ".json": "json",
    ".html": "html",
    ".htm": "html",
    ".parquet": "parquet",
}


def in_colour() -> bool:
    """Whether the terminal takes colours and nobody asked for none."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def form_of(asked: str | None, out: Path | None) -> str:
    """The format that was asked for, or else the one that the file's ending names, or else `terminal`.

    Raises `CFG-USAGE` where the ending is that of a chart.
    """
    if asked is None and out is not None and out.suffix.lower() in _CHARTS:
        raise EscalaError(
            "CFG-USAGE",
            "--out",
            f"{out.name} would be a chart, and this writes a text",
            next_step="give escala report --figures DIR for charts, or name a format with --format",
        )
    return asked or (_BY_ENDING.get(out.suffix.lower()) if out else None) or "terminal"


def show(text: str) -> None:
    """What a verb was asked for, on standard output."""
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def show_json(value: object) -> None:
    """The same for programs."""
    import msgspec

    show(msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode())


def note(text: str) -> None:
    """What a person should know beside it, on standard error."""
    sys.stderr.write(f"escala: {text}\n")
