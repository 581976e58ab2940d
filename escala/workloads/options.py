"""Checks of a workload's options beyond their type."""

from __future__ import annotations

from escala.terms.errors import EscalaError
from escala.terms.words import did_you_mean, nearest


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


def between(lowest: float, highest: float, **options: float) -> None:
    """Each option lies within these bounds. Raises EscalaError CFG-RANGE."""
    for name, value in options.items():
        if not lowest <= value <= highest:
            raise _refused(name, f"{value} is out of range", f"{lowest} to {highest}")


def sizes(**options: tuple[int, ...]) -> None:
    """Each option is a list of one size or more, of 1 or more each. Raises EscalaError CFG-RANGE."""
    for name, value in options.items():
        if not value or min(value) < 1:
            raise _refused(name, f"{list(value)} is out of range", "one size or more, each 1 or more")


def one_of(choices: tuple[str, ...], **options: str) -> None:
    """Each option is one of these words. Raises EscalaError CFG-VALUE."""
    for name, value in options.items():
        if value not in choices:
            raise EscalaError(
                "CFG-VALUE",
                f"workload.options.{name}",
                f"{value!r} is not known",
                expected=f"one of {', '.join(choices)}",
                next_step=did_you_mean(nearest(value, choices)),
            )


def divides(heads: int, width: int) -> None:
    """`width` is shared equally by `heads` attention heads. Raises EscalaError CFG-RANGE."""
    if width % heads:
        raise _refused("heads", f"a width of {width} does not divide into {heads} heads", "a divisor of the width")


def _refused(name: str, what: str, expected: str) -> EscalaError:
    return EscalaError("CFG-RANGE", f"workload.options.{name}", what, expected=f"expected {expected}")
