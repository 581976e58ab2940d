"""Rows of zeros in the shape and type in which a data set stores its own."""

from __future__ import annotations

import torch
from torch import Tensor

from escala.data.base import Description


def stored(data: Description, rows: int) -> tuple[Tensor, Tensor]:
    """Rows and their targets as they are stored."""
    raw = torch.zeros((rows, *data.shape), dtype=getattr(torch, data.dtype))
    of_one = {"text": (1,), "questions": (3,)}.get(data.kind, ())
    return raw, torch.zeros((rows, *of_one), dtype=torch.int64)
