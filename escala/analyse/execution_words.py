"""How a row runs its steps, in the few words that a table has room for."""

from __future__ import annotations

from typing import Any

import msgspec

from escala.analyse.language import marked, say
from escala.terms.experiment import ExecutionSpec

_ALONE = ("channels_last", "compile", "foreach", "fused", "powersgd")
"""Values that say by themselves which key they are of."""
_COMPRESSED = marked("{precision}, gradients {compression}")
_KEYS = {
    "optimizer_kernel": marked("optimizer"),
    "dropout_kernel": marked("dropout"),
    "unused": marked("unused parameters"),
    "random": marked("dropout by"),
}
"""Other keys are told as they are written in an experiment."""


def execution_words(execution: ExecutionSpec) -> str:
    """Every key but the precision that is not at its default: `channels_last, compile, feed host`; empty for none."""
    usual = msgspec.structs.asdict(ExecutionSpec())
    found = [
        _word(key, value)
        for key, value in msgspec.structs.asdict(execution).items()
        if key != "precision" and value != usual[key]
    ]
    return ", ".join(found)


def precision_words(execution: ExecutionSpec) -> str:
    """The number format, and that of gradients on their way where it is not the same."""
    if execution.compression == "none":
        return execution.precision
    return say(_COMPRESSED, precision=execution.precision, compression=execution.compression)


def _word(key: str, value: Any) -> str:
    if value is True:
        return key
    if value in _ALONE and key != "compression":
        return str(value)
    told = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{say(_KEYS[key]) if key in _KEYS else key} {told}"
