"""Parameters and floating-point operations of a network, counted on one row of zeros."""

from __future__ import annotations

import numpy as np
import torch
from torch.utils.flop_counter import FlopCounterMode

from escala.data.base import Description
from escala.workloads.base import Workload


def model_facts(work: Workload, data: Description) -> tuple[int, int]:
    """(parameters, floating-point operations of one sample, forward and backward). Raises `MODEL-*`."""
    torch.manual_seed(0)
    model = work.model()
    raw = torch.from_numpy(np.zeros((1, *data.shape), dtype=data.dtype))
    counter = FlopCounterMode(display=False)
    with counter:
        work.loss(model(work.inputs(raw, torch.float32)), torch.zeros(1, dtype=torch.int64)).backward()
    return sum(parameter.numel() for parameter in model.parameters()), counter.get_total_flops()
