"""Nested plain data with tensors in it <-> named tensors and JSON. Nothing in it can stand for code."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from escala.terms.errors import EscalaError

Tensors = dict[str, Tensor]


def pack(tree: Any, where: str) -> tuple[Tensors, Any]:
    """Tensors by the path that leads to them from `where`, in host memory, and the rest as JSON can hold it.

    Raises CKPT-STATE for what is no number, text, list, tuple, dictionary or tensor.
    """
    tensors = Tensors()
    return tensors, _packed(tree, where, tensors)


def unpack(plain: Any, tensors: Tensors) -> Any:
    """What `pack` was given. Raises CKPT-STATE where it was never packed, KeyError where a tensor is missing."""
    if not isinstance(plain, list):
        return plain
    kind, value = plain
    if kind == "tensor":
        return tensors[value]
    if kind == "float":
        return float(value)
    if kind in ("list", "tuple"):
        items = [unpack(item, tensors) for item in value]
        return items if kind == "list" else tuple(items)
    if kind == "pairs":
        return {unpack(key, tensors): unpack(item, tensors) for key, item in value}
    if kind == "dict":
        return {key: unpack(item, tensors) for key, item in value.items()}
    raise EscalaError("CKPT-STATE", "checkpoint", f"holds something of the unknown kind {kind!r}")


def _packed(value: Any, where: str, tensors: Tensors) -> Any:
    # Every list in the answer is a kind and its content, so a dictionary of the person's own cannot be mistaken.
    if isinstance(value, Tensor):
        while where in tensors:
            # Slashes within keys can make one path of two.
            where += "'"
        # safetensors takes contiguous tensors only.
        tensors[where] = value.detach().cpu().contiguous()
        return ["tensor", where]
    if isinstance(value, float):
        return value if math.isfinite(value) else ["float", str(value)]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        items = [_packed(item, f"{where}/{place}", tensors) for place, item in enumerate(value)]
        return ["tuple" if isinstance(value, tuple) else "list", items]
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value):
            return ["dict", {key: _packed(item, f"{where}/{key}", tensors) for key, item in value.items()}]
        pairs = enumerate(value.items())
        return ["pairs", [[_packed(k, "", {}), _packed(v, f"{where}/{place}", tensors)] for place, (k, v) in pairs]]
    raise EscalaError(
        "CKPT-STATE",
        where,
        f"a value of type {type(value).__name__} cannot be kept in a checkpoint",
        expected="numbers, texts, lists, dictionaries and tensors",
    )


def numbers(values: list[float]) -> Tensor:
    """Float64, so that they come back bit for bit."""
    return torch.tensor(values, dtype=torch.float64)
