"""Packages of extras, looked for when a format that needs them is asked for."""

from __future__ import annotations

import importlib
from typing import Any

from escala.terms.errors import EscalaError


def extra(module: str, name: str, for_what: str) -> Any:
    """A module of the extra `name`. Raises EscalaError ENV-EXTRA where it cannot be imported."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise EscalaError(
            "ENV-EXTRA",
            module,
            f"is needed for {for_what} and cannot be imported: {error}",
            next_step=f"pip install 'escala[{name}]'",
        ) from error
