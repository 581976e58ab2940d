"""What a person asks for. Decoded strictly: an unknown key or a value out of range is refused."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from escala.terms.published import PublishedSpec, SourceSpec

Precision = Literal["fp64", "fp32", "tf32", "bf16", "fp16", "fp8"]
Device = Literal["cpu", "cuda", "mps", "xpu"]
Optimizer = Literal["sgd", "adam", "adamw"]
Schedule = Literal["constant", "cosine", "step", "one-cycle"]
RateRule = Literal["none", "linear", "sqrt"]
MemoryFormat = Literal["contiguous", "channels_last"]
OptimizerKernel = Literal["default", "foreach", "fused"]
DropoutKernel = Literal["default", "packed"]
Feed = Literal["memory", "resident", "host"]
Compression = Literal["none", "fp16", "bf16", "powersgd"]
PipelineSchedule = Literal["gpipe", "1f1b", "interleaved"]

Positive = Annotated[int, Meta(ge=1)]
NormForm = Annotated[str, Meta(pattern=r"^(local|sync|ghost:([2-9]|[1-9][0-9]{1,8}))\Z")]
PositiveFloat = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Share = Annotated[float, Meta(ge=0, lt=1)]


class WorkloadSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """`[workload]`: what is trained, on which data."""

    name: str
    """A name from the table of workloads, or `module:factory`."""
    data: str | tuple[str, ...] | None = None
    """A named set, a path, or `synthetic`; of a list the first that is found; left out: the workload's own."""
    options: dict[str, Any] = field(default_factory=dict)
    """What the workload's dataclass, or the factory, takes."""
    validation: Share | None = None
    """Share of the training rows held out for validation; 0: no validation phase; left out: the rows published for
    validation, or else a twelfth of the training rows."""
    limit: Positive | None = None
    """Use this many training rows only (test rows are never cut)."""


class TrainSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """`[train]`: the recipe. `batch` is global: samples per optimiser step, over all seats."""

    batch: Positive = 64
    epochs: Positive | None = None
    steps: Positive | None = None
    until: float | None = None
    """The score to train until: the first validation that reaches it ends training; `epochs` is the most to try."""
    optimizer: Optimizer = "sgd"
    lr: PositiveFloat = 0.05
    momentum: Share = 0.0
    weight_decay: NotNegative = 0.0
    lr_rule: RateRule = "none"
    """How the learning rate follows the batch: not at all, in proportion to it, or to its square root."""
    base_batch: Positive | None = None
    """The batch that `lr` is meant for, where `lr_rule` scales it."""
    schedule: Schedule = "constant"
    """The learning rate over optimiser steps, after the warm-up; `cosine` and `one-cycle` end at 0."""
    warmup_steps: Annotated[int, Meta(ge=0)] = 0
    """Optimiser steps over which the learning rate rises to its full value."""
    decay_steps: Positive | None = None
    """For `step`: the learning rate is multiplied by `decay_factor` after every so many steps."""
    decay_factor: Annotated[float, Meta(gt=0, le=1)] = 0.1
    clip_norm: PositiveFloat | None = None
    """Largest norm of the whole gradient, after it was added up over the seats."""
    seed: Annotated[int, Meta(ge=0, lt=2**31)] = 0


class ExecutionSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """`[execution]`: how one seat runs a step."""

    precision: Precision = "fp32"
    batchnorm: NormForm = "local"
    """Whose rows a batch normalisation goes by in training: the seat's own (`local`), those of all seats (`sync`), or
    each N consecutive rows of the global batch by themselves (`ghost:N`)."""
    microbatch: Positive | Literal["max"] | None = None
    """Samples that a seat takes through the network at once; its gradients add up to those of its whole share. `max`:
    as many as its memory has room for, found by short runs."""
    unused: Literal["stop", "detect"] = "stop"
    """Parameters that get no gradient: refused where a strategy cannot have them, or looked for in every step."""
    random: Literal["seat", "row"] | None = None
    """By what dropout draws: each seat for itself (`seat`), or for each row of the global batch the same on whatever
    seat (`row`); left out: `row` with `ghost:N`, where the result is to depend on no seat, else `seat`."""
    memory_format: MemoryFormat = "contiguous"
    """How images and the weights of convolutions lie in memory: channel by channel, or all channels of a pixel
    together, as convolutions in 16 bits on accelerators want them."""
    activation_checkpointing: bool = False
    """Keep what each block of the network is given alone, and let blocks pass again on the way back."""
    compile: bool | Literal["tuned"] = False
    """Train through `torch.compile`; evaluation goes through the network as it is. `tuned`: on GPUs
    the sizes in which kernels divide their work are measured one by one; compiling takes longer, steps less."""
    capture: bool | Annotated[int, Meta(ge=1, le=64)] = False
    """Record whole optimiser steps as a CUDA graph and replay it: so many steps a graph; `true`: one, and
    with `feed = "resident"` as many short ones as a measurement finds good."""
    optimizer_kernel: OptimizerKernel = "default"
    """How the optimiser goes over the weights: as torch chooses, in a few kernels, or in one."""
    dropout_kernel: DropoutKernel = "default"
    """How dropout draws on processors: one number after the other as torch does, or four at a time."""
    feed: Feed = "memory"
    """Where batches are cut: in host memory within the step; on the device, which holds the whole set; or in host
    memory by threads that work ahead."""
    workers: Annotated[int, Meta(ge=0, le=256)] = 0
    """Threads of `feed = "host"`; 0: as many as a short measurement before the start finds best."""
    bucket_mb: PositiveFloat | None = None
    """Size of the buckets in which DDP exchanges gradients, MiB; left out: torch's own choice."""
    compression: Compression = "none"
    """What DDP makes of gradients before they are exchanged; all but `none` change the result a little."""
    overlap: Literal["backward", "optimizer"] = "backward"
    """What `ddp` hides its exchange of gradients behind: the way back, by DDP's own buckets, or the optimiser's step
    on parts of the network whose gradients have come."""
    static_graph: bool = False
    """Tell DDP that every step uses the same parameters in the same way."""
    transport: Literal["gloo", "shm"] | None = None
    """How gradients meet: those of CPU seats through gloo's sockets; `shm`: through memory that the seats of one node
    have in common, of GPUs that reach each other's; left out: torch's usual way for the device."""
    pin: bool = False
    """Bind each CPU seat to cores of its own."""
    threads: Positive | None = None
    """CPU threads of each seat; left out: an equal share of the usable cores."""
    choose: Literal["given", "best"] = "given"
    """`best`: of the keys that are left out here, the values that short runs find fastest and that learn the same."""

    @property
    def unit(self) -> int:
        """Rows of a global batch that must stay together on one seat: N with `ghost:N`, else 1."""
        return int(self.batchnorm.removeprefix("ghost:")) if self.batchnorm.startswith("ghost:") else 1

    @property
    def unroll(self) -> int | None:
        """Optimiser steps in a recorded graph; 0: none is recorded; None: as many as a measurement finds good."""
        if self.capture is True:
            return None if self.feed == "resident" else 1
        return int(self.capture)

    @property
    def at_once(self) -> int | None:
        """Samples that a seat takes through the network at once; None: all of its share, as far as is known."""
        return None if self.microbatch == "max" else self.microbatch

    @property
    def by_row(self) -> bool:
        """Whether dropout draws for rows of the global batch and not for seats."""
        return self.random == "row" or (self.random is None and self.unit > 1)

    def copies_between(self, device: str) -> bool:
        """Whether gradients are carried from device to device by copies, on one of this kind or name."""
        return self.transport == "shm" and device.startswith("cuda")


class StrategyOptions(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`options` of a `[[strategy]]`: what only some strategies take; each says which in `Strategy.takes`.

    A mesh of two dimensions is `ways` seats and one number here: `ways = 4, options = { replicas = 2 }` is 2 replicas
    of 2 seats each.
    """

    replicas: Positive | None = None
    """Copies of the network, across which gradients are averaged; the `ways` are divided among them. Left out: the
    strategy's own choice."""
    shard: bool = False
    """Cut what the replicas of `tensor` hold again, over the replicas, as `fsdp` does."""
    reshard: bool = True
    """Whether gathered weights are freed after the forward pass (third stage of ZeRO) or kept until the way back."""
    offload: Literal["cpu"] | None = None
    """Keep what is sharded in host memory, and make the optimiser's step there."""
    narrow: bool = False
    """Gather weights in the 16 bits that `precision = "bf16"` computes in; gradients still meet in 32."""
    prefetch: Annotated[int, Meta(ge=0, le=64)] = 0
    """Parts whose weights are asked for ahead of the one that computes; 0: as torch does."""
    group: Positive = 1
    """How many neighbouring blocks have their weights gathered and freed together."""
    schedule: PipelineSchedule | None = None
    """In which order a pipeline's seats go forward and back; left out: `1f1b`."""
    microbatches: Positive | None = None
    """Into how many microbatches a pipeline cuts the rows of a step; left out: four for each of its seats."""
    chunks: Annotated[int, Meta(ge=2)] | None = None
    """Stages of each seat of an `interleaved` pipeline; left out: 2."""
    split: tuple[Positive, ...] | None = None
    """How many consecutive blocks of the network each stage holds; left out: balanced by a short measurement."""


class StrategySpec(Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[strategy]]`: who sits where."""

    name: str
    peer: str | None = None
    """Somebody else's training loop, from the table of peers; left out: escala's own."""
    ways: Positive = 1
    device: Device | None = None
    """Left out: the best the host has."""
    simulate: bool = False
    """Allow several seats on one device; every figure then carries the doubt `simulated`."""
    scaling: Literal["strong", "weak"] = "strong"
    """`strong`: the batch is `train.batch`; `weak`: it is that for every way."""
    label: str | None = None
    """Name of the row in tables; left out: made from name, ways and device."""
    repeats: Annotated[int, Meta(ge=0)] | None = None
    """How often this row is run; left out: `measure.repeats`; 0: not at all."""
    options: StrategyOptions = StrategyOptions()
    execution: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)


class MeasureSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """`[measure]`: how often and how carefully."""

    repeats: Positive = 5
    baseline: str | None = None
    """Label of the row that speed-ups are against; left out: the first strategy."""
    attribute: str | None = None
    """Label of the row whose speed-up over the baseline is taken apart; left out: with `--attribute` the last
    strategy, else none."""
    tolerance: NotNegative = 0.01
    """How far a score may be worse than the baseline's before its row cannot win: in the score's own unit, or as a
    share of the baseline's score where lower is better."""
    cooldown_s: NotNegative = 2.0
    block_s: Annotated[float, Meta(ge=0.2)] = 0.25
    """Shortest time between two synchronisations, seconds."""
    heartbeat_s: Annotated[float, Meta(ge=2)] = 15.0
    """A seat that is silent for this long is taken for stopped, seconds."""
    stall_s: Annotated[float, Meta(ge=2)] = 600.0
    """A trial in which no seat makes a step for this long is taken for hung, seconds."""
    best_s: Annotated[float, Meta(gt=0)] = 180.0
    """With `choose = "best"`: how long the search for a row may take, seconds."""
    meters: tuple[str, ...] = ("memory", "nvml", "rapl")
    """Names from the table of meters, or `module:factory`; of one part of the machine the first that can be read."""
    sample_s: Annotated[float, Meta(ge=0.05, le=10)] = 0.5
    """Time between two samples of power, seconds."""
    idle_s: Annotated[float, Meta(ge=0, le=600)] = 10.0
    """How long the idle machine's power is measured before the first trial, seconds; 0: not at all."""
    energy_repeats: Annotated[int, Meta(ge=0)] | None = None
    """Rounds that read energy, spread between `repeats` that only time; 0 or left out: every repeat does both."""
    profile: Literal["shares", "trace"] | None = None
    """One more run of each row, at the end and under torch's profiler: where the time of a step goes. `trace` keeps
    what the profiler saw in files of Chrome's format."""
    memory_gib: dict[str, PositiveFloat] = field(default_factory=dict)
    """Memory that devices may use, to stand in for smaller ones: GiB of `cpu` (each seat's process), of `cuda:0`, or
    of each `cuda`."""
    tdp_w: dict[str, PositiveFloat] = field(default_factory=dict)
    """For the meter `estimate`: watts at full load of `cpu` (all packages), of `cuda:0`, or of each `cuda`."""
    grid_g_per_kwh: PositiveFloat | None = None
    """Grams of CO2 that one kWh of this place's grid stands for; left out: no CO2 is estimated."""
    order_seed: Annotated[int, Meta(ge=0)] = 0
    """Seed of the random order of trials within each round."""


class CaseSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[case]]`: settings that belong together, under one name."""

    name: str
    set: dict[str, Any]
    """Dotted key -> value."""
    quick: dict[str, Any] = field(default_factory=dict)
    """Laid over `set` by `--quick`, and gone once the experiment is read."""


class Experiment(Struct, frozen=True, forbid_unknown_fields=True):
    """A whole experiment file."""

    workload: WorkloadSpec
    train: TrainSpec
    strategy: Annotated[tuple[StrategySpec, ...], Meta(min_length=1)]
    execution: ExecutionSpec = ExecutionSpec()
    measure: MeasureSpec = MeasureSpec()
    sweep: dict[str, list[Any]] = field(default_factory=dict)
    """Dotted key -> values; several keys make a grid."""
    case: tuple[CaseSpec, ...] = ()
    """Every case is run at every point of the grid."""
    quick: dict[str, Any] = field(default_factory=dict)
    """Dotted key -> value, laid over the rest by `--quick`, and gone once the experiment is read."""
    published: tuple[PublishedSpec, ...] = ()
    source: SourceSpec | None = None
    title: str = ""
    about: str = ""
