"""A small experiment as text, lines put into it, and how it is refused."""

from __future__ import annotations

import pytest

from escala.plan.read import parse
from escala.terms.errors import EscalaError, Exit

BASE = """\
title = "base"
[workload]
name = "mlp"
[train]
epochs = 1
#train
[[strategy]]
name = "single"
[[strategy]]
name = "ddp"
ways = 2
#ddp
[measure]
repeats = 3
#measure
"""


def written(place: str, lines: str) -> str:
    """The base experiment with `lines` in place of the comment `#place`, and the rest of it untouched."""
    assert f"#{place}\n" in BASE
    return BASE.replace(f"#{place}\n", f"{lines}\n")


def refused(text: str, *overrides: str) -> EscalaError:
    with pytest.raises(EscalaError) as caught:
        parse(text, "x.toml", overrides)
    assert caught.value.exit is (Exit.UNSAFE if caught.value.code == "CFG-TAG" else Exit.CONFIG)
    assert "\n" not in str(caught.value)
    return caught.value
