"""What the process does with host memory that has been freed."""

from __future__ import annotations

import ctypes
import os

# Numbers of glibc's <malloc.h>.
_TRIM_THRESHOLD = -1
_MMAP_MAX = -4
_NEVER = 2**31 - 1


def keep_freed_memory() -> bool:
    """Keep it for the next step; False where the C library cannot be told so (it is glibc's `mallopt`).

    Gradients and activations are freed and wanted again in every step. glibc gives large ones back to the system,
    whose pages must then be mapped and cleared anew: 0 to 150 page faults a step of the MLP on 2 cores, up to 7 % of
    its time, more or less by the luck of where things lie. The process holds at its end what it held at its peak.
    """
    libc = ctypes.CDLL(None) if os.name == "posix" else None
    mallopt = getattr(libc, "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _NEVER)) and bool(mallopt(_MMAP_MAX, 0))
