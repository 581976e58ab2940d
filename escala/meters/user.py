"""A person's own power meter, named `module:factory`: a plug with a display, say."""

from __future__ import annotations

from escala.meters.base import Bench, PowerMeter
from escala.terms.errors import EscalaError, Unavailable
from escala.terms.modules import own_module


def own(name: str, bench: Bench) -> PowerMeter:
    """The meter that `module:factory` makes of a `Bench`. Raises `Unavailable` if it does, ENV-METER."""
    module_name, _, attribute = name.partition(":")
    try:
        made = getattr(own_module(module_name), attribute)(bench)
    except Unavailable:
        raise
    except Exception as error:
        raise EscalaError(
            "ENV-METER",
            name,
            f"no meter came of it: {type(error).__name__}: {error}",
            expected="a function that takes a Bench and returns a PowerMeter",
        ) from error
    if not isinstance(made, PowerMeter):
        raise EscalaError(
            "ENV-METER", name, f"it returned a {type(made).__name__}", expected="a PowerMeter of escala.meters.base"
        )
    return made
