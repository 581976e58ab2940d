"""The power trace of a trial: one file of arrays, without pickle, in safetensors' format.

Arrays: `seconds` (n), from the start of the trial's first sample; by channel `WHERE/watts`, `WHERE/joules` and
whatever else it told (n), as not a number where it told nothing. The note `trace` is JSON: channels and windows.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import safetensors.numpy
from msgspec import Struct
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from escala.store.files import write_atomic
from escala.terms.errors import EscalaError

_NOTE = "trace"


class Window(Struct, frozen=True):
    """One stretch of a phase, seconds on the trace's own axis; `epoch` counts from 1."""

    phase: str
    epoch: int
    begin: float
    end: float


class About(Struct, frozen=True):
    """What the arrays are of. `idle_w` holds watts before the campaign by channel."""

    trial: str
    windows: tuple[Window, ...]
    idle_w: dict[str, float]


def write_trace(path: Path, about: About, arrays: Mapping[str, NDArray[np.floating]]) -> None:
    """Put the trace under `path`. Raises ENV-DISK."""
    note = msgspec.json.encode(about).decode()
    data = safetensors.numpy.save(
        {name: np.ascontiguousarray(value) for name, value in arrays.items()}, {_NOTE: note}
    )
    write_atomic(path, data)


def read_trace(path: Path) -> tuple[About, dict[str, NDArray[np.floating]]]:
    """What `write_trace` wrote. Raises RES-TRACE where the file is missing, or is no trace."""
    try:
        with safe_open(path, framework="numpy") as file:
            note = (file.metadata() or {}).get(_NOTE, "")
            about = msgspec.json.decode(note, type=About)
            return about, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except (OSError, SafetensorError, msgspec.DecodeError) as error:
        raise EscalaError("RES-TRACE", str(path), f"is no power trace: {error}") from None
