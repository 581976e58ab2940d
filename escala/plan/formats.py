"""Which number formats a device can compute in."""

from __future__ import annotations

from importlib.util import find_spec

from escala.terms.experiment import Precision
from escala.terms.host import Host

_FP8_CAPABILITY = (8, 9)
"""First compute capability whose tensor cores multiply 8-bit floats (NVIDIA Ada; Hopper is 9.0)."""


def format_unfit(precision: Precision, kind: str, host: Host) -> str | None:
    """Why trials on devices of this kind cannot use the format; None: they can."""
    if precision == "fp64" and kind == "mps":
        return "fp64 does not exist on mps"
    if precision == "tf32" and kind != "cuda":
        return f"tf32 is a format of CUDA devices; on {kind} it would be fp32"
    if precision != "fp8":
        return None
    if kind != "cuda":
        return f"fp8 needs a CUDA device of compute capability 8.9 or newer; {kind} has none"
    for card in host.of_kind(kind):
        if _number(card.capability) < _FP8_CAPABILITY:
            return f"fp8 needs compute capability 8.9 or newer; {card.name} has {card.capability or 'an unknown one'}"
    if find_spec("torchao") is None:
        return "fp8 needs the package torchao: pip install 'escala[fp8]'"
    return None


def _number(capability: str) -> tuple[int, ...]:
    return tuple(int(part) for part in capability.split(".")) if capability else (0,)
