"""Checks of a workload's options beyond their type."""

from __future__ import annotations

from escala.terms.errors import EscalaError


def at_least(least: int, **options: int) -> None:
    """Each option is `least` or more. Raises EscalaError CFG-RANGE."""
    for name, value in options.items():
        if value < least:
            raise _refused(name, f"{value} is out of range", f"{least} or more")


def share(**options: float) -> None:
    """Each option is a share that leaves something: 0 or more, below 1. Raises EscalaError CFG-RANGE."""
    for name, value in options.items():
        if not 0 <= value < 1:
            raise _refused(name, f"{value} is out of range", "0 or more, below 1")


def divides(heads: int, width: int) -> None:
    """`width` is shared equally by `heads` attention heads. Raises EscalaError CFG-RANGE."""
    if width % heads:
        raise _refused("heads", f"a width of {width} does not divide into {heads} heads", "a divisor of the width")


def _refused(name: str, what: str, expected: str) -> EscalaError:
    return EscalaError("CFG-RANGE", f"workload.options.{name}", what, expected=f"expected {expected}")
