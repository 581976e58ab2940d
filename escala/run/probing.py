"""A network without dropout, so that executions which draw other numbers can be compared by their losses."""

from __future__ import annotations

from torch import nn
from torch.nn.modules.dropout import _DropoutNd

from escala.workloads.attention import Attend


def without_dropout(model: nn.Module) -> nn.Module:
    """The same network with every share that its layers drop at 0."""
    for layer in model.modules():
        if isinstance(layer, _DropoutNd | Attend):
            layer.p = 0.0
        elif isinstance(layer, nn.MultiheadAttention | nn.RNNBase):
            layer.dropout = 0.0
    return model
