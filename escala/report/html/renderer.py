"""The renderer of charts that the page carries: Vega, Vega-Lite and Vega-Embed in one script."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path

from escala.data.prepared import cache_folder
from escala.plan.child import python
from escala.store.files import disk_errors, names_in, write_atomic
from escala.terms.errors import EscalaError

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


def renderer(cache: Path | None = None) -> str:
    """The script, which sets `vegaEmbed`; its interpreter needs no `eval`.

    Put together once for each version of vl-convert, which takes seconds, and then kept in `cache`; left out: the
    cache of prepared data. What was kept is used only if it is whole.
    """
    place = _place(cache)
    if (kept := _kept(place)) is not None:
        return kept
    # What was kept needs nothing of it.
    import vl_convert

    text: str = vl_convert.javascript_bundle(_SNIPPET)
    # Where nothing can be kept, the report is the same and only takes longer.
    with suppress(EscalaError):
        with disk_errors(place.parent):
            names_in(place.parent)
        write_atomic(place, f"{_digest(text)}\n{text}".encode())
    return text


def renderer_ahead() -> Callable[[], str]:
    """The same, begun now beside other work: what is returned waits for it.

    In a process of its own, since no other thread runs while it is put together. If that comes to nothing, it is put
    together by who asks for it.
    """
    if (kept := _kept(_place(None))) is not None:
        return lambda: kept
    quiet = subprocess.DEVNULL
    child = subprocess.Popen(python(__name__), stdin=quiet, stdout=quiet, stderr=quiet)

    def made() -> str:
        child.wait()
        return renderer()

    return made


def _place(cache: Path | None) -> Path:
    made_of = f"{version('vl-convert-python')}-{_digest(_SNIPPET)[:8]}"
    return (cache or cache_folder(os.environ)) / f"renderer-{made_of}.js"


def _kept(place: Path) -> str | None:
    try:
        digest, _, text = place.read_bytes().decode().partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return text if digest == _digest(text) else None


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    renderer()
