"""What crosses between the campaign's parent and the process of one seat. JSON, never pickle."""

from __future__ import annotations

from msgspec import Struct, field

from escala.terms.events import TrialMoved
from escala.terms.record import Outcome, Reading, SeatShares
from escala.terms.trial import Trial


class Keeping(Struct, frozen=True):
    """How a training is kept: checkpoints in `folder`, every `every_s` seconds and at the end of each epoch.

    `begin` is the checkpoint to go on from; `data` the digest of the rows.
    """

    folder: str
    every_s: float
    data: str
    begin: str | None = None


class Assignment(Struct, frozen=True):
    """Everything that a seat needs to know.

    `data` is the folder of prepared arrays; `private` a fresh folder, readable by its owner alone, that holds the
    meeting point; `launched` the monotonic clock at the start of the process, seconds.
    """

    trial: Trial
    rank: int
    data: str
    private: str
    launched: float
    block_s: float
    timeout_s: float
    meters: tuple[str, ...] = ()
    keeping: Keeping | None = None
    profile_trace: str | None = None
    """Where a run that looks at where time goes keeps what the profiler saw."""
    probing: bool = False
    """A short run whose losses are compared: without dropout, whose numbers differ between executions."""


def profile_trace_name(rank: int) -> str:
    """The file in a trial's folder of logs in which a seat keeps what the profiler saw."""
    return f"profile-rank{rank}.json.gz"


class EpochTally(Struct, frozen=True):
    """One epoch as one seat saw it; `loss_sum` over `count` is its part of the mean loss."""

    train_s: float
    order: str
    loss_sum: float | None
    count: int
    validation_s: float | None = None
    score: float | None = None


class Divergence(Struct, frozen=True):
    """The first step (from 0) whose loss was not finite, and the seat that saw it."""

    step: int
    rank: int


class Span(Struct, frozen=True):
    """A stretch of a phase on the monotonic clock, seconds; `epoch` counts from 1."""

    phase: str
    epoch: int
    begin: float
    end: float


class SeatResult(Struct, frozen=True, kw_only=True):
    """What one seat measured. `losses` are this seat's parts: they add up over the seats to the global mean."""

    setup_s: float
    first_step_s: float
    settled: bool
    steps_per_block: int
    block_seconds: tuple[float, ...]
    losses: tuple[float | None, ...]
    epochs: tuple[EpochTally, ...]
    steps: int
    samples: int
    train_s: float
    validation_s: float | None = None
    test_s: float | None = None
    test_scores: tuple[float, ...] = ()
    test_rows: int = 0
    parameters: int = 0
    skipped: int | None = None
    diverged: Divergence | None = None
    readings: tuple[Reading, ...] = ()
    spans: tuple[Span, ...] = ()
    shares: SeatShares | None = None
    software: dict[str, str] = field(default_factory=dict)


class Failure(Struct, frozen=True):
    """Why a seat could not go on. `follow_up`: only the echo of another seat's end; `error`: ours, as plain data."""

    outcome: Outcome
    reason: str
    follow_up: bool = False
    readings: tuple[Reading, ...] = ()
    error: dict[str, str] | None = None


class Message(Struct, frozen=True):
    """One line from a seat to its parent; exactly one of the fields is set. `edge`: a phase begins or ends now."""

    moved: TrialMoved | None = None
    edge: bool = False
    result: SeatResult | None = None
    failure: Failure | None = None
