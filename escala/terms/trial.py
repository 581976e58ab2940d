"""One fully decided run, before it starts."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from escala.terms.experiment import ExecutionSpec, TrainSpec

Role = Literal["both", "time", "energy"]


class Seat(Struct, frozen=True):
    """One process of a trial.

    `rows` is the half-open interval of each GLOBAL batch that this seat sees; a shorter batch is cut in
    the same proportion. `threads` is the seat's share of the node's usable cores.
    """

    rank: int
    node: int
    devices: tuple[str, ...]
    rows: tuple[int, int]
    threads: int

    @property
    def batch(self) -> int:
        """Rows of a full global batch that this seat sees."""
        return self.rows[1] - self.rows[0]


class StrategyUse(Struct, frozen=True):
    """A strategy as one trial uses it: the device is decided."""

    name: str
    ways: int
    device: str
    simulate: bool = False


class Trial(Struct, frozen=True):
    """Workload, strategy, execution, seats, batch, budget, seed and repeat of one run.

    `point` holds the swept keys and their values; `unfit` the reason why it cannot run here, if any.
    """

    id: str
    label: str
    workload: str
    options: dict[str, Any]
    data: str
    validation: float | None
    limit: int | None
    strategy: StrategyUse
    execution: ExecutionSpec
    train: TrainSpec
    batch: int
    seats: tuple[Seat, ...]
    seed: int
    repeat: int
    role: Role = "both"
    """What the run is for: `time` reads no energy, and the times of `energy` do not count."""
    point: dict[str, Any] = field(default_factory=dict)
    unfit: str | None = None
    peer: str | None = None
    """Somebody else's loop that trains; None: escala's."""
