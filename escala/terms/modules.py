"""A person's own module, as the part before the colon of `module:factory` names it."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType


def own_module(name: str) -> ModuleType:
    """The module of that name, installed or in the working directory. Raises whatever its import raises."""
    # Last on the path: a file in the working directory must not take the place of an installed module.
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    return importlib.import_module(name)
