"""What every workload gives: a model, a loss as (sum, count), a metric and an optimiser."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from escala.data.base import Form
from escala.terms.experiment import TrainSpec


def _same(mean: float) -> float:
    return mean


@dataclass(frozen=True)
class Metric:
    """A figure of merit: a mean over rows, or over what `Workload.count` counts, and what is made of that mean."""

    name: str
    better: Literal["higher", "lower"] = "higher"
    over: Literal["rows", "count"] = "rows"
    of_mean: Callable[[float], float] = _same
    lowest: float | None = None
    """The value that none can be below; None: there is no such, or it is not known."""
    highest: float | None = None
    """The value that none can be above."""


ACCURACY = Metric("accuracy", lowest=0.0, highest=1.0)

Score = Callable[[Tensor, Tensor], Tensor]
"""Takes outputs and targets of some rows; returns each metric SUMMED over them, [metrics] or 0-d for one."""


class Workload(ABC):
    """Model, data, loss, metric and optimiser recipe. Subclasses are frozen dataclasses of their options."""

    data: ClassVar[tuple[str, ...]]
    """Data sets to look for, in this order, when the experiment names none."""
    metrics: ClassVar[tuple[Metric, ...]] = (ACCURACY,)
    """The first is the one that strategies are compared by."""
    evaluation_rows: ClassVar[int] = 500
    """Rows judged at a time, whatever the number of seats."""

    @abstractmethod
    def model(self) -> nn.Module:
        """A new network with initial weights drawn from torch's global generator."""

    @abstractmethod
    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        """The parts, in order, between which the network may be cut or around which it may be wrapped.

        To be cut between devices it must be an `nn.Sequential`, or these must be the whole of it: modules of its own,
        of which each takes what the one before gives, a tensor or a tuple of tensors.
        """

    def tensor_plan(self) -> Mapping[str, str]:
        """Layer name -> `column` or `row`, for layers that may be split across devices, in the order of a pass."""
        return {}

    def tensor_units(self) -> Mapping[str, int]:
        """Layer of that plan -> how many of its outputs (column) or inputs (row) stay on one device together.

        Those of an attention head, for instance; 1 for a layer that is not named.
        """
        return {}

    def form(self) -> Form:
        """What the rows must be."""
        return Form()

    def decided(self, options: Mapping[str, Any], memory_bytes: int) -> Mapping[str, Any]:
        """Its options, in which what goes by the memory of one device is replaced by what it comes to there."""
        del memory_bytes
        return options

    def notes(self) -> tuple[str, ...]:
        """What a record should say of the network beside its options, such as where its weights came from."""
        return ()

    def example(self, raw: Tensor, targets: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Stored rows and targets, on the seat's device -> what the network takes and what the loss compares with."""
        return self.inputs(raw, dtype), targets

    def lengths(self, raw: Tensor) -> Tensor | None:
        """Tokens of each stored row, int64 [rows], where batches of like lengths are wanted; None: as they come."""
        del raw
        return None

    def inputs(self, raw: Tensor, dtype: torch.dtype) -> Tensor:
        """Stored rows [n, ...], narrow, on the seat's device -> what the network takes, in `dtype`."""
        return raw.to(dtype)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Loss SUMMED over what counts in these rows (0-d). Cross-entropy of logits [n, classes]."""
        return nn.functional.cross_entropy(outputs, targets, reduction="sum")

    def count(self, targets: Tensor) -> int:
        """How many things that count these stored targets hold: rows here, tokens in a language model."""
        return len(targets)

    def score(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """The metrics SUMMED over these rows, [metrics] or 0-d for one; the mean is taken once, over all seats."""
        return (outputs.argmax(dim=-1) == targets).sum()

    def judge(self, side: bytes) -> Score:
        """`score` for a part whose `side` file holds this; for metrics that need more than targets."""
        del side
        return self.score

    def optimizer(self, parameters: Iterable[nn.Parameter], train: TrainSpec) -> torch.optim.Optimizer:
        """The optimiser that the recipe asks for."""
        if train.optimizer == "sgd":
            return torch.optim.SGD(parameters, lr=train.lr, momentum=train.momentum, weight_decay=train.weight_decay)
        kind = torch.optim.Adam if train.optimizer == "adam" else torch.optim.AdamW
        return kind(parameters, lr=train.lr, weight_decay=train.weight_decay)


def pixels(raw: Tensor, dtype: torch.dtype) -> Tensor:
    """Images [n, height, width] or [n, channels, height, width] -> [n, channels, height, width] in -1..1, in `dtype`.

    Stored as uint8, or as floats in 0..1.

    Centred, as is common; the source leaves it open. In hand-written runs of the MLP on Fashion-MNIST (dropout 0.2,
    SGD 0.05, batch 64, 3 epochs, two seeds) test accuracy was 0.838 to 0.846 with 0..1, 0.850 to 0.859 with -1..1.
    """
    # Dividing an integer tensor gives float32 in one kernel; only other types need a conversion first.
    wide = raw if dtype is torch.float32 and not raw.is_floating_point() else raw.to(dtype)
    half = 0.5 if raw.is_floating_point() else 127.5
    centred = (wide / half).sub_(1)
    return centred if centred.ndim == 4 else centred.unsqueeze(1)
