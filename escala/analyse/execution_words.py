"""How a row runs its steps, in the few words that a table has room for."""

from __future__ import annotations

from typing import Any

import msgspec

from escala.terms.experiment import ExecutionSpec

_ALONE = ("channels_last", "compile", "foreach", "fused", "powersgd")
"""Values that say by themselves which key they are of."""
_KEYS = {"optimizer_kernel": "optimizer", "unused": "unused parameters", "random": "dropout by"}


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
    return f"{execution.precision}, gradients {execution.compression}"


def _word(key: str, value: Any) -> str:
    if value is True:
        return key
    if value in _ALONE and key != "compression":
        return str(value)
    told = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{_KEYS.get(key, key)} {told}"
