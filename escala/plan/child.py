"""Child processes: how they are named, and how their lives are tied to their parent's."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def python(module: str, *arguments: str) -> list[str]:
    """The command of a child. `-P`: no file in the working directory may take the place of an installed module."""
    return [sys.executable, "-P", "-m", module, *arguments]


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, also when that end is SIGKILL (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have died before the request; the kernel then sends nothing.
    if os.getppid() != parent:
        os._exit(1)
