"""The table of workloads. Importing it imports torch, so only child processes do."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from typing import Any

from escala.terms.errors import EscalaError
from escala.workloads.base import Workload
from escala.workloads.cnn_small import CnnSmall
from escala.workloads.mlp import Mlp
from escala.workloads.user import own

WORKLOADS: dict[str, type[Workload]] = {
    "mlp": Mlp,
    "cnn-small": CnnSmall,
}


def workload(name: str, options: Mapping[str, Any]) -> Workload:
    """The workload of that name with these options. Raises CFG-VALUE, CFG-KEY, CFG-TYPE or MODEL-*."""
    if ":" in name:
        return own(name, options)
    kind = WORKLOADS.get(name)
    if kind is None:
        raise EscalaError(
            "CFG-VALUE",
            "workload.name",
            f"there is no workload {name!r}",
            expected=f"one of {', '.join(WORKLOADS)}, or module:factory",
            next_step=_did_you_mean(name, list(WORKLOADS)),
        )
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for key, value in options.items():
        if key not in fields:
            raise EscalaError(
                "CFG-KEY",
                f"workload.options.{key}",
                f"{name} takes no such option",
                expected=f"one of {', '.join(fields)}",
                next_step=_did_you_mean(key, list(fields)),
            )
        default = fields[key].default
        if isinstance(value, bool) is not isinstance(default, bool) or not isinstance(
            value, (int, float) if isinstance(default, float) else type(default)
        ):
            raise EscalaError(
                "CFG-TYPE",
                f"workload.options.{key}",
                f"{value!r} is of the wrong type",
                expected=f"like {default!r}",
            )
    return kind(**options)


def _did_you_mean(word: str, words: list[str]) -> str:
    near = difflib.get_close_matches(word, words, n=1, cutoff=0.3)
    return f"did you mean {near[0]}?" if near else ""
