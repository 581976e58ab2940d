"""One fully decided run, before it starts."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from escala.terms.experiment import ExecutionSpec, StrategyOptions, TrainSpec

Role = Literal["both", "time", "energy", "profile"]


class Seat(Struct, frozen=True, omit_defaults=True):
    """One process of a trial.

    `rows` is the half-open interval of each GLOBAL batch that this seat sees; a shorter batch is cut in
    the same proportion. `threads` is the seat's share of the node's usable cores. Seats of one `replica` work
    together on the same rows; None: this seat has its rows to itself. Of each replica exactly one seat `tells` the
    loss and the scores.
    """

    rank: int
    node: int
    devices: tuple[str, ...]
    rows: tuple[int, int]
    threads: int
    replica: int | None = None
    tells: bool = True

    @property
    def share(self) -> int:
        """Which of the shares of the rows is this seat's: the number of its replica."""
        return self.rank if self.replica is None else self.replica

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
    options: StrategyOptions = StrategyOptions()


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
    """What the run is for: `time` reads no energy, the times of `energy` do not count, and `profile` looks at where
    the time of a few steps goes and does nothing else."""
    point: dict[str, Any] = field(default_factory=dict)
    unfit: str | None = None
    peer: str | None = None
    """Somebody else's loop that trains; None: escala's."""
    memory_gib: dict[str, float] = field(default_factory=dict)
    """Memory that devices may use, as in `MeasureSpec`; empty: all that they have."""

    @property
    def timed(self) -> bool:
        """Whether its times count."""
        return self.role in ("both", "time")

    @property
    def metered(self) -> bool:
        """Whether its energy is read."""
        return self.role in ("both", "energy")
