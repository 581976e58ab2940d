"""What a peer is: the same work through somebody else's training loop."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from escala.execution.order import Order
from escala.terms.experiment import TrainSpec

if TYPE_CHECKING:
    from torch import nn

    from escala.workloads.base import Workload

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Task:
    """The work of a peer, the same for all of them.

    `model` lies on the CPU and holds the initial weights; whoever trains, trains a copy. `train.lr` is the rate of
    this batch. `inputs` [rows, ...] are what the network takes, made before anything is timed, `targets` int64 [rows]
    the numbers of their classes, `validation` [rows, ...] inputs alone. Losses are cross-entropies of logits
    [rows, classes], mean over the batch; the last batch of an epoch may be short. `devices` are named as in a seat;
    several are driven by one process. Outputs are predicted `chunk` rows at a time.
    """

    workload: Workload
    model: nn.Module
    train: TrainSpec
    devices: tuple[str, ...]
    threads: int
    inputs: NDArray[Any]
    targets: NDArray[np.int64]
    validation: NDArray[Any] | None
    chunk: int


class Edges(Protocol):
    """What a peer calls at the edges of its epochs; escala's clock is read there and nowhere else.

    `training_begins`, `training_ended`, then, where the task has rows for validation, `validation_begins` and
    `validated`; so for each epoch. An exception that comes from here must be let through.
    """

    def training_begins(self) -> None:
        """Before the first batch of an epoch is cut."""

    def training_ended(self, losses: Sequence[float] | Floats) -> None:
        """After its last step: the loss of each step, read from the device."""

    def validation_begins(self) -> None:
        """Before the network is asked about the first row."""

    def validated(self, outputs: Floats) -> None:
        """Its outputs for all rows of validation, in their order."""


class Peer(ABC):
    """One loop of somebody else's around one task. It is made in the process that trains; subclasses are final."""

    @abstractmethod
    def __init__(self, task: Task) -> None:
        """Place the data as this peer's users do. Raises Unfit where its package lacks the device."""

    @abstractmethod
    def train(self, orders: Sequence[Order], edges: Edges) -> None:
        """Train from the initial weights, an epoch for each order of rows, int64 [rows].

        Called twice, the first time to warm up: what was traced or compiled then must serve the second time, too.
        """

    @abstractmethod
    def predict(self, inputs: NDArray[Any]) -> Floats:
        """Outputs [rows, classes] of the network that was trained last, without dropout."""

    @abstractmethod
    def synchronise(self) -> None:
        """Return once the work queued on the devices has ended."""

    def peak_memory(self) -> dict[str, int] | None:
        """Most bytes that the peer's own allocator took, by device; None: torch's did, which escala's meter reads."""
        return None
