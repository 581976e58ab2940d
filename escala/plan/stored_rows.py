"""Rows of zeros in the shape and type in which a data set stores its own."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from escala.data.base import Description
from escala.execution.memory_format import lay_out_inputs
from escala.execution.precision import parameter_type
from escala.plan.traces import TraceKey
from escala.workloads.base import Workload


def stored(data: Description, rows: int) -> tuple[Tensor, Tensor]:
    """Rows and their targets as they are stored."""
    raw = torch.zeros((rows, *data.shape), dtype=getattr(torch, data.dtype))
    of_one = {"text": (1,), "questions": (3,)}.get(data.kind, ())
    return raw, torch.zeros((rows, *of_one), dtype=torch.int64)


def rows_for(work: Workload, data: Description, key: TraceKey, rows: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """So many rows and their targets as they are stored, and as the network and the loss take them."""
    raw, kept = stored(data, rows)
    example = lay_out_inputs(partial(work.example, dtype=parameter_type(key.precision)), key.memory_format)
    return raw, kept, *example(raw, kept)


def judged_rows(work: Workload, data: Description) -> int:
    """Most rows that are judged at once, whatever the number of seats; 0 where no split is judged."""
    return min(work.evaluation_rows, max((rows for name, rows in data.rows.items() if name != "train"), default=0))


def last_judged(work: Workload, data: Description) -> list[int]:
    """Numbers of rows that are left for the last pass over a split, and are fewer than `judged_rows`."""
    most = judged_rows(work, data)
    return sorted({rows % most for name, rows in data.rows.items() if name != "train"} - {0}) if most else []
