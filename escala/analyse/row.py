"""One row of a table: the repeats of one trial put together. Plain data, so that a writer needs no numpy."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from escala.terms.doubts import Doubt
from escala.terms.record import How


class Interval(Struct, frozen=True):
    """A median, the interval it is known to, and the values behind it (one a run, in recorded order).

    Infinite stands for never, where that can be.
    """

    median: float
    low: float
    high: float
    values: tuple[float, ...]

    def overlaps(self, other: Interval) -> bool:
        """Whether the two intervals share a value, so that they cannot be told apart."""
        return self.low <= other.high and other.low <= self.high


class TimeShares(Struct, frozen=True):
    """Where the time of a step goes, as shares of it: the mean over the seats, each as in `SeatShares`.

    `most_idle` is the seat that idles most, by rank, and `least_work` the share of work of the seat that works least.
    """

    work: float
    exchange: float
    idle: float
    hidden: float
    seats: int
    steps: int
    least_work: float
    most_idle: int


class Summary(Struct, frozen=True, kw_only=True):
    """What all runs of one row gave. Field names are public: add, never rename.

    Times are seconds by run; `None` where no run had that figure. `batch` is global, `seat_batch` the rows of
    a full global batch by seat. `samples` counts training rows seen, each as often as it was seen. `outcomes`
    counts runs by outcome, `reason` is the first one given, `runs` is how many the times come from.
    `baseline` is the label that speed-ups are against: they are None where that row has no times here.
    `memory_bytes` is the highest peak by device, `cpu` being the host's; where no run was done, the peak at which it
    ended. `devices` are those that seats train on.
    `memory_estimate_bytes` is the peak that was expected before the runs.
    Efficiencies are speed-up over (ways / the baseline's ways). `doubts` holds what was found, by doubt.
    `other_scores` are the workload's further metrics by name. `prepare_s` is the longest time that making the data
    ready took, which is part of no other figure; `padding` the share of tokens that only fill rows up, `skipped` how
    many damaged rows were left out.
    `target` is `train.until`, a score of `target_name`. Of `tried` runs `reached` came to it in validation; one that
    diverged did not. `to_score_s` is training and validation up to there, `to_score_epochs` the epochs; infinite is
    never, and so is a median where no more than half of the runs came there. `speedup_to_score` stands where neither
    median is never; with a target `speedup_total` is None, and `speedup_train` that of samples a second.
    `score_lost` is how much worse the score is than the baseline's, below 0: better; in the score's own unit where
    higher is better, else as a share of the baseline's. `tolerance` is how much of that is allowed.
    `energy_j` is the joules of all phases that the parts of the machine in `energy_parts` took, read as `energy_how`
    tells, in `energy_runs` runs; None for `energy_reason`. `energy_left_out` runs were read in another way. Of
    `attempts`, `energy_only` were there for their energy, so that their times do not count. `energy_host_j` adds the
    boards that idled (`idle_parts`), whose part of it is `idle_share`; `energy_above_idle_j` is less what the parts
    of `energy_parts` take with nothing running. `joules_per_sample` is of training alone. `mean_w` and `peak_w` are
    watts by part. `edp` is energy times the seconds of all phases, J s; `edp_host` with the boards that idled. Ratios
    are multiples of the baseline's, None where the two were read in other ways, or with a target. `to_score_energy_j`
    and `to_score_edp` are up to the target, as `to_score_s` is. `co2_g` is `energy_j` at the grid's grams a kWh.
    `execution` names what is not at its default in how a step is run, but for the precision.
    `user_lines` is how many lines of a peer's loop its user would write; None: the loop is not theirs.
    `time_shares` is where the time of a step goes, of the run under the profiler.
    `counter_over_integral` compares the joules of a counter with the integral of sampled watts.
    """

    label: str
    point: dict[str, Any]
    workload: str
    data: str
    origin: Literal["real", "generated"] | None
    digest: str | None
    strategy: str
    device: str
    ways: int
    seats: int
    batch: int
    seat_batch: tuple[int, ...]
    epochs: int | None
    steps: int | None
    samples: int | None
    precision: str
    threads: int
    outcomes: dict[str, int]
    reason: str | None
    runs: int
    setup_s: Interval | None
    epoch_s: Interval | None
    train_s: Interval | None
    validation_s: Interval | None
    test_s: Interval | None
    total_s: Interval | None
    samples_per_second: Interval | None
    score: Interval | None
    score_name: str | None
    parameters: int | None
    memory_bytes: dict[str, int]
    likeness: tuple[str, ...]
    baseline: str | None = None
    is_baseline: bool = False
    speedup_total: Interval | None = None
    speedup_train: Interval | None = None
    efficiency_total: Interval | None = None
    efficiency_train: Interval | None = None
    doubts: dict[Doubt, str] = {}
    score_better: Literal["higher", "lower"] = "higher"
    other_scores: dict[str, Interval] = {}
    prepare_s: float | None = None
    padding: float | None = None
    skipped: int = 0
    target: float | None = None
    target_name: str | None = None
    reached: int | None = None
    tried: int | None = None
    to_score_s: Interval | None = None
    to_score_epochs: Interval | None = None
    speedup_to_score: Interval | None = None
    score_lost: Interval | None = None
    tolerance: float = 0.01
    energy_j: Interval | None = None
    energy_host_j: Interval | None = None
    energy_above_idle_j: Interval | None = None
    energy_phase_j: dict[str, Interval] = {}
    idle_share: Interval | None = None
    joules_per_sample: Interval | None = None
    samples_per_joule: Interval | None = None
    mean_w: dict[str, Interval] = {}
    peak_w: dict[str, Interval] = {}
    edp: Interval | None = None
    edp_host: Interval | None = None
    energy_ratio: Interval | None = None
    edp_ratio: Interval | None = None
    edp_host_ratio: Interval | None = None
    to_score_energy_j: Interval | None = None
    to_score_edp: Interval | None = None
    co2_g: Interval | None = None
    counter_over_integral: Interval | None = None
    energy_how: dict[str, How] = {}
    energy_parts: tuple[str, ...] = ()
    idle_parts: tuple[str, ...] = ()
    energy_runs: int = 0
    energy_left_out: int = 0
    energy_only: int = 0
    energy_reason: str | None = None
    execution: str = ""
    user_lines: int | None = None
    time_shares: TimeShares | None = None
    memory_estimate_bytes: dict[str, int] = {}
    devices: tuple[str, ...] = ()

    @property
    def peak_bytes(self) -> int | None:
        """Of the fullest of its devices; None: not known."""
        return max((self.memory_bytes[one] for one in self.devices if one in self.memory_bytes), default=None)

    @property
    def host_bytes(self) -> int | None:
        """Beside its devices, in the host's memory; None: not known, or the host is one of them."""
        return None if "cpu" in self.devices else self.memory_bytes.get("cpu")

    @property
    def attempts(self) -> int:
        """Runs recorded, whatever became of them."""
        return sum(self.outcomes.values())
