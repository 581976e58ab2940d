"""What happened to one trial. Field names are public: add, never rename."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from escala.terms.doubts import Doubt
from escala.terms.experiment import ExecutionSpec
from escala.terms.host import Host
from escala.terms.trial import Trial

SCHEMA = 1

USER_LINES = "lines of user code"
"""The name in `software` of how much of a peer's loop its user would write."""

Outcome = Literal["done", "unfit", "out of memory", "diverged", "failed", "interrupted"]
How = Literal["counter", "sampled", "estimated"]


class Reading(Struct, frozen=True):
    """One measured value; `value` is None with a `reason` where it could not be read.

    `phase` is the part of the trial that it is of: `train`, `validation` or `test`; None: the whole, or no time at
    all. `used` tells whether the trial ran on that part of the machine, or let it idle.
    """

    what: str
    where: str
    value: float | None
    unit: str
    how: How
    reason: str | None = None
    phase: str | None = None
    used: bool | None = None


class Score(Struct, frozen=True):
    """The metric over the test split; `samples` is how many rows were judged, each once."""

    name: str
    value: float
    samples: int
    better: Literal["higher", "lower"] = "higher"


class Phases(Struct, frozen=True):
    """Seconds by phase, as long as the slowest seat; None: the trial had no such phase."""

    train_s: float
    validation_s: float | None = None
    test_s: float | None = None

    @property
    def total_s(self) -> float:
        """All phases together, without set-up."""
        return self.train_s + (self.validation_s or 0.0) + (self.test_s or 0.0)


class Epoch(Struct, frozen=True):
    """One pass over the training rows. `order` is a hash of the order in which rows were seen."""

    train_s: float
    loss: float
    order: str
    validation_s: float | None = None
    score: float | None = None


def reaches(score: float | None, target: float, better: Literal["higher", "lower"]) -> bool:
    """Whether a score is as good as the target, or better; one that is no number is not."""
    if score is None:
        return False
    return score >= target if better == "higher" else score <= target


class ToScore(Struct, frozen=True):
    """How soon a trial came to the score of `train.until` in validation.

    `epochs`, `steps` and seconds are up to and with the validation that reached it, or all that was tried; `total_s`
    is training and validation, never the test. `energy_j` is None with a reason where joules were not read.
    """

    metric: str
    target: float
    reached: bool
    epochs: int
    steps: int
    train_s: float
    total_s: float
    better: Literal["higher", "lower"] = "higher"
    energy_j: float | None = None
    energy_reason: str | None = "not measured: no power meter was asked for"


class Tried(Struct, frozen=True):
    """One execution that `choose = "best"` measured for about `seconds`; `reason`: why it could not be chosen."""

    execution: ExecutionSpec
    seconds: float
    samples_per_second: float | None = None
    reason: str | None = None


class SeatShares(Struct, frozen=True):
    """Where the time of `steps` steps went on one seat, as shares of it: `work`, `exchange` and `idle` add up to 1.

    `work`: the device `where` computes or copies. `exchange`: it does nothing but exchange with other seats, or wait
    for them in an exchange. `idle`: neither, since the host does not keep it busy or it has nothing to do (the bubble
    of a pipeline). `hidden` is exchange that goes on beside work and costs no time of its own.
    """

    rank: int
    where: str
    steps: int
    work: float
    exchange: float
    idle: float
    hidden: float


class DataUse(Struct, frozen=True):
    """Which rows a trial saw: `origin` is `real` or `generated`, `digest` a hash of the content."""

    name: str
    origin: Literal["real", "generated"]
    where: str
    digest: str
    rows: dict[str, int]
    classes: int
    padding: float | None = None
    """Share of tokens that only fill rows up."""
    skipped: int = 0
    """Damaged rows that were left out."""
    notes: tuple[str, ...] = ()


class Record(Struct, frozen=True, kw_only=True):
    """One line of `records.jsonl`.

    `losses` has one value per optimiser step, the mean over the global batch. `block_seconds` are times of
    full blocks of `steps_per_block` steps. `rates` are learning rates at the landmarks of the schedule.
    `skipped_steps` of `steps` changed nothing, since fp16 found a gradient that was not finite; None with other
    formats. `memory_bytes` is the peak by device. Seconds are monotonic-clock
    seconds; `setup_s` (start of the process to the end of warm-up) is not part of any phase, nor is `prepare_s`
    (checking the data and making the arrays ready, once for the campaign; little where they were in the cache).
    """

    id: str
    trial: Trial
    outcome: Outcome
    host: Host
    reason: str | None = None
    setup_s: float | None = None
    phases: Phases | None = None
    epochs: tuple[Epoch, ...] = ()
    block_seconds: tuple[float, ...] = ()
    steps_per_block: int | None = None
    steps: int = 0
    samples_per_second: float | None = None
    score: Score | None = None
    other_scores: tuple[Score, ...] = ()
    to_score: ToScore | None = None
    losses: tuple[float, ...] = ()
    rates: dict[str, float] = field(default_factory=dict)
    skipped_steps: int | None = None
    parameters: int | None = None
    flops_per_sample: int | None = None
    memory_bytes: dict[str, int] = field(default_factory=dict)
    memory_estimate_bytes: dict[str, int] = field(default_factory=dict)
    """The peak by device that was expected before the run; empty where nothing could be told."""
    readings: tuple[Reading, ...] = ()
    power_trace: str | None = None
    doubts: tuple[Doubt, ...] = ()
    data: DataUse | None = None
    prepare_s: float | None = None
    execution: ExecutionSpec | None = None
    """What was chosen where the trial left the choice open."""
    tried: tuple[Tried, ...] = ()
    shares: tuple[SeatShares, ...] = ()
    """By seat, where the time goes: of a run for nothing else. `profile_traces` are its files in Chrome's format."""
    profile_traces: tuple[str, ...] = ()
    software: dict[str, str] = field(default_factory=dict)
    started: str = ""
    wall_s: float | None = None
    schema: int = SCHEMA
