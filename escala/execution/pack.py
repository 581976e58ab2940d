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
    """What `pack` was given. Raises CKPT-STATE where it was never packed so, or a tensor is missing."""
    match plain:
        case ["tensor", str(where)] if where in tensors:
            return tensors[where]
        case ["float", str(text)] if text in ("nan", "inf", "-inf"):
            return float(text)
        case ["list", list(items)]:
            return [unpack(item, tensors) for item in items]
        case ["tuple", list(items)]:
            return tuple(unpack(item, tensors) for item in items)
        case ["pairs", list(items)] if all(isinstance(item, list) and len(item) == 2 for item in items):
            return {unpack(key, tensors): unpack(value, tensors) for key, value in items}
        case ["dict", dict(items)]:
            return {key: unpack(value, tensors) for key, value in items.items()}
        case [kind, *_]:
            raise EscalaError("CKPT-STATE", "checkpoint", f"holds something of the unknown kind {str(kind)[:40]!r}")
        case list() | dict():
            raise EscalaError("CKPT-STATE", "checkpoint", "holds something that was never packed")
    return plain


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
