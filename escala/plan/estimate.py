"""Bytes that are expected on one device."""

from __future__ import annotations

from msgspec import Struct

from escala.terms.host import Host

EXCHANGED = 32 * 2**20
"""Bytes that replicas of split networks exchange at once."""

_THREADS = 2
"""Those that multiply matrices on a device: the way forward is one thread's, the way back one of autograd's own."""
_USUAL = 4096 * 2 * 1024 + 16 * 8 * 1024
_HOPPER = 4096 * 8 * 1024


class Estimate(Struct, frozen=True):
    """Bytes on one device at the peak, and what of: not all parts are there at once, so `peak` is below their sum."""

    peak: int
    parameters: int = 0
    buffers: int = 0
    gradients: int = 0
    optimizer: int = 0
    activations: int = 0
    stepping: int = 0
    """What the optimiser's step needs for itself."""
    snapshot: int = 0
    """The weights as they were, kept until the end of the warm-up."""
    data: int = 0
    process: int = 0
    """The program with its libraries, on the host alone."""
    workspace: int = 0
    """What libraries keep to multiply matrices in."""
    multiplies: bool = True
    """Whether matrices are multiplied there."""


def product_workspace(device: str, host: Host) -> int:
    """What PyTorch takes from its own allocator for cuBLAS on this device, once for each thread, and keeps.

    By the documented default of CUBLAS_WORKSPACE_CONFIG, `:4096:2:16:8` in KiB, and on compute capability 9.0
    `:4096:8`. There 33,554,432 bytes were seen to stay after the first product, and as many after the first on the
    way back (torch 2.11, H200).
    """
    known = next((one for one in host.devices if one.key == device and one.kind == "cuda"), None)
    if known is None:
        return 0
    return _THREADS * (_HOPPER if known.capability.startswith("9.") else _USUAL)
