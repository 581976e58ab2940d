"""The table of workloads. Importing it imports torch, so only child processes do."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from escala.terms.errors import EscalaError
from escala.terms.words import did_you_mean, nearest, not_in_table
from escala.workloads.base import Workload
from escala.workloads.bert_qa import BertQa
from escala.workloads.cnn_medium import CnnMedium
from escala.workloads.cnn_small import CnnSmall
from escala.workloads.mlp import Mlp
from escala.workloads.resnet18 import Resnet18
from escala.workloads.resnet34 import Resnet34
from escala.workloads.transformer_lm import TransformerLm
from escala.workloads.transformer_small import TransformerSmall
from escala.workloads.user import own

WORKLOADS: dict[str, type[Workload]] = {
    "mlp": Mlp,
    "cnn-small": CnnSmall,
    "cnn-medium": CnnMedium,
    "resnet18": Resnet18,
    "resnet34": Resnet34,
    "transformer-small": TransformerSmall,
    "transformer-lm": TransformerLm,
    "bert-qa": BertQa,
}


def workload(name: str, options: Mapping[str, Any]) -> Workload:
    """The workload of that name with these options. Raises CFG-VALUE, CFG-KEY, CFG-TYPE, CFG-RANGE or MODEL-*."""
    if ":" in name:
        return own(name, options)
    kind = WORKLOADS.get(name)
    if kind is None:
        raise not_in_table("workload.name", "workload", name, WORKLOADS, own=True)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for key, value in options.items():
        if key not in fields:
            raise EscalaError(
                "CFG-KEY",
                f"workload.options.{key}",
                f"{name} takes no such option",
                expected=f"one of {', '.join(fields)}",
                next_step=did_you_mean(nearest(key, fields)),
            )
        default = fields[key].default
        if not _is_like(value, default):
            raise EscalaError(
                "CFG-TYPE",
                f"workload.options.{key}",
                f"{value!r} is of the wrong type",
                expected=f"like {list(default) if isinstance(default, tuple) else default!r}",
            )
    return kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in options.items()})


def _is_like(value: object, default: object) -> bool:
    """Whether a value is of the default's type; a whole number may stand for a float, a list for a tuple."""
    if isinstance(default, tuple):
        return isinstance(value, list | tuple) and all(_is_like(item, default[0]) for item in value)
    if isinstance(value, bool) is not isinstance(default, bool):
        return False
    return isinstance(value, (int, float) if isinstance(default, float) else type(default))
