"""Campaigns that bring about nearly everything that a report can say, and the names that stand in them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import energetic as joules
import recorded as made
import shown as cases
from msgspec.structs import replace

from escala.analyse.annex import Annex
from escala.analyse.attribute import attributions
from escala.analyse.epochs import by_epoch
from escala.analyse.published import published
from escala.analyse.row import Summary
from escala.analyse.summary import summarise
from escala.report.charts.matter import Line, Matter, Shade, Trace
from escala.report.html.about import About, seen
from escala.terms.published import PublishedSpec, SourceSpec
from escala.terms.record import USER_LINES, Epoch, Record, SeatShares

TRACE = Trace(
    "single",
    "",
    (Line("cuda:0", (0.0, 0.5, 1.0), (70.0, 300.0, 310.0)), Line("package-0", (0.0, 1.0), (40.0, 90.0))),
    (Shade("train", 0.2, 0.8), Shade("validation", 0.8, 0.9)),
)
ENTRIES = (
    PublishedSpec("ddp x2", "speed-up", 1.8, "x"),
    PublishedSpec("ddp x2", "score", "80", "%"),
    PublishedSpec("ddp x4", "speed-up", 3.5, "x", against="single"),
    PublishedSpec("single", "energy", 1.17e6, "J"),
    PublishedSpec("ddp x2", "EDP with idle", 0.7),
    PublishedSpec("single", "samples/s", 4000.0),
)
SOURCE = SourceSpec("2024", "K20m", "CIFAR", 100)
NAMES = (
    *(
        "single",
        "ddp x1",
        "ddp x2",
        "ddp x4",
        "ddp x8",
        "ddp",
        "fsdp x2",
        "fsdp",
        "wide",
        "hot",
        "cut",
        "base",
        "tuned",
    ),
    *("mlp", "fashion-mnist", "synthetic", "cpu", "cuda", "package", "dram", "nvml", "rapl", "fp32", "bf16", "d1"),
    *("Xeon Test", "Other Chip", "Test GPU", "torch", "Linux", "escala run", "escala report --figures", "escala"),
    *("train.batch", "train.epochs", "train.steps", "train.until", "measure.repeats", "measure.cooldown_s", "K20m"),
    *(
        "CIFAR",
        "one",
        "two",
        "random",
        "seat",
        "foreach",
        "row",
        "d1d1",
        "strategy.name",
        "strategy.ways",
        "execution.precision",
        "execution.unused",
    ),
    *(
        "execution.compression",
        "execution.memory_format",
        "compression bf16",
        "channels_last",
        "contiguous",
        "detect",
    ),
    *("stop", "none", "escala run EXPERIMENT --attribute"),
)
"""Names, keys and commands of these campaigns, which are the same in every language."""
REASON = "1.2.3"
"""What was recorded as a reason stays as it is; here it is no word at all."""


def learned(records: Sequence[Record]) -> list[Record]:
    """The records with a curve of scores."""
    curve = tuple(Epoch(1.0, 2.0, f"o{place}", 0.1, 0.5 + place / 10) for place in range(3))
    return [replace(record, epochs=curve) if record.outcome == "done" else record for record in records]


def reasoned(records: Sequence[Record]) -> list[Record]:
    return [replace(record, reason=REASON if record.reason else None) for record in records]


def troubled() -> list[Record]:
    full = made.make("wide", batch=4096, outcome="out of memory", reason=REASON, data=None)
    return [*reasoned(made.troubled_campaign()), replace(full, memory_bytes={"cpu": 2**30})]


def doubted() -> list[Record]:
    """Doubts by rule and by record: other work, simulated seats, times that differ, other threads."""
    few = made.repeats("ddp x2", (1.0, 1.9), ways=2, doubts=("throttled", "busy host", "simulated"))
    still = made.repeats("hot", made.FAST, doubts=("disturbed", "not warm", "limited memory"))
    short = made.repeats("cut", (0.05, 0.06, 0.05), blocks=(0.0001, 0.0002), data=made.DATA)
    threads = made.repeats("fsdp x2", made.FAST, ways=2, threads=2)
    return [
        *made.repeats("single", made.SLOW),
        *few,
        *still,
        *short,
        *threads,
        *made.repeats("wide", made.FAST, batch=256),
    ]


def worse() -> list[Record]:
    """Rows that are faster and less accurate: within the tolerance, beyond it, and in one run alone."""
    return [
        *made.repeats("single", made.SLOW, [0.870, 0.871, 0.869, 0.870, 0.870]),
        *made.repeats("ddp x2", made.FAST, [0.865, 0.866, 0.864, 0.865, 0.865], ways=2),
        *made.repeats("ddp x4", made.FAST, [0.80, 0.81, 0.79, 0.80, 0.80], ways=4),
        *made.repeats("wide", made.FAST[:1], [0.7]),
    ]


def lower() -> list[Record]:
    """A score of which less is better, some of it lost."""
    pairs = (("single", made.SLOW, 30.0), ("ddp x2", made.FAST, 30.2), ("ddp x4", made.FAST, 40.0))
    found = []
    for label, times, score in pairs:
        for record in made.repeats(label, times, [score + place / 100 for place in range(5)]):
            assert record.score is not None
            found.append(replace(record, score=replace(record.score, name="perplexity", better="lower")))
    return found


def aimed() -> list[Record]:
    """A target that some rows reach, some runs miss and one row never comes to."""
    return [
        *made.aimed("single", [6, 6, 7, 6, 6]),
        *made.aimed("ddp x2", [3, 3, None, 3, 3], ways=2),
        *made.aimed("ddp x4", [None, None, 9, None, None], ways=4),
        *made.repeats("wide", made.SLOW),
    ]


def aimed_in_vain() -> list[Record]:
    return [*made.aimed("single", [None, None, 9]), *made.aimed("ddp x2", [3, 4, 3], ways=2)]


def small() -> list[Record]:
    """More seats than a network pays for, on the same cores and on more boards."""
    slow = (6.0, 6.1, 6.2, 6.0, 6.1)
    return [
        *made.repeats("single", made.SLOW),
        *made.repeats("ddp x2", slow, ways=2),
        *made.repeats("single", made.SLOW, device="cuda", host=made.GPUS),
        *made.repeats("ddp x2", slow, ways=2, device="cuda", host=made.GPUS),
        *made.repeats("ddp x4", slow, ways=4, device="cuda", host=made.GPUS),
    ]


def metered() -> list[Record]:
    """Energy that is estimated, read in other ways, in disagreement, idle beside others, and not read."""
    ways = {"device": "cuda", "host": joules.PAIR}
    boards = {"cuda:0": 100.0, "cuda:1": 20.0}
    return [
        *joules.runs("single", [2.0] * 5, boards, idle_w=joules.IDLE, integral={"cuda:0": 0.9}, **ways),
        *joules.runs("ddp x2", [0.85] * 5, {"cuda:0": 110.0, "cuda:1": 110.0}, ways=2, **ways),
        *joules.runs("ddp x1", [1.8] * 5, boards, how={"cuda:0": "sampled", "cuda:1": "counter"}, **ways),
        *joules.runs("wide", [1.9] * 5, {"cuda:0": 90.0, "cuda:1": 9.0}, how="estimated", **ways),
        *joules.runs("hot", [1.9] * 5, {"cuda:0": REASON, "cuda:1": 9.0}, **ways),
        *joules.runs("cut", [1.9] * 5, {"cuda:1": 9.0}, **ways),
    ]


def unmetered() -> list[Record]:
    nothing = replace(joules.NO_NVML, reason=REASON)
    return joules.runs("single", [2.0] * 5, {}, readings=(nothing,)) + made.repeats("ddp x2", made.FAST, ways=2)


def scaled() -> list[Record]:
    """Kinds of rows on several numbers of boards: some that scale, one that does not, one that does too well."""
    found = made.repeats("single", made.SLOW, device="cuda", host=made.GPUS)
    for ways, times in ((2, 1.1), (4, 0.6)):
        more = {"ways": ways, "device": "cuda", "host": made.GPUS}
        found += made.repeats(
            f"ddp x{ways}", [times * (1 + place / 100) for place in range(5)], strategy="ddp", **more
        )
        found += made.repeats(
            f"fsdp x{ways}", [ways * (2 + place / 100) for place in range(5)], strategy="fsdp", **more
        )
        found += made.repeats(f"base {ways}", [0.5 / ways**2 * 2] * 5, strategy="base", **more)
    found += made.repeats("ddp x2 ", [1.2] * 5, strategy="tuned", ways=2, device="cuda", host=made.GPUS)
    return found + made.repeats("tuned", [1.2] * 5, strategy="tuned", ways=2, device="cuda", host=made.GPUS)


def profiled() -> list[Record]:
    looked = made.make("ddp x2", 9, ways=2)
    seats = (SeatShares(0, "cpu", 20, 0.5, 0.3, 0.2, 0.1), SeatShares(1, "cpu", 20, 0.7, 0.1, 0.2, 0.3))
    looked = replace(looked, trial=replace(looked.trial, role="profile"), shares=seats, phases=None, score=None)
    return [*made.repeats("single", made.SLOW), *made.repeats("ddp x2", made.FAST, ways=2), looked]


def tuned(*without: str, count: int = 5) -> list[Record]:
    """A target that differs from the baseline in two factors, with both mixtures of them but those left out."""
    mixtures: tuple[tuple[str, float, dict[str, object]], ...] = (
        ("single", 4.0, {}),
        ("base", 2.5, {"precision": "bf16"}),
        ("hot", 3.0, {"memory_format": "channels_last"}),
        ("tuned", 2.0, {"precision": "bf16", "memory_format": "channels_last"}),
    )
    return [
        replace(record, trial=replace(record.trial, execution=replace(record.trial.execution, **keys)))
        for label, time, keys in mixtures
        if label not in without
        for record in made.repeats(label, [time * (1 + place / 200) for place in range(count)], strategy="single")
    ]


def sitting() -> list[Record]:
    """Executions that differ in how gradients are exchanged, and one row that never saw its data."""
    keys = {"compression": "bf16", "unused": "detect", "random": "seat", "optimizer_kernel": "foreach"}
    found = made.repeats("single", made.SLOW)
    for record in made.repeats("ddp x2", [2.0, 2.03, 1.97, 2.02, 1.98], ways=2):
        execution = replace(record.trial.execution, **keys)
        found.append(replace(record, trial=replace(record.trial, execution=execution), software={USER_LINES: "12"}))
    failed = made.make("hot", outcome="failed", reason=REASON, data=None)
    other = made.repeats("wide", made.FAST, data=replace(made.DATA, digest="d1d1"))
    unseen = made.make("cut", outcome="failed", reason=REASON, data=None, point={"train.batch": 9})
    return [*found, failed, *other, unseen]


def guessed(record: Record) -> Record:
    """The record with energy up to its target."""
    assert record.phases is not None
    bare = joules.metered(record, {"package-0": 50.0}, how="estimated")
    aim = record.to_score
    return replace(bare, to_score=replace(aim, energy_j=aim.total_s * 50.0) if aim else None)


def aimed_metered() -> list[Record]:
    return [guessed(one) for label, way in (("single", 1), ("ddp x2", 2)) for one in _aim(label, way)]


def _aim(label: str, ways: int) -> list[Record]:
    return made.aimed(label, [6 // ways] * 5, ways=ways)


def crowded() -> list[Record]:
    """More rows with one doubt than are named, on machines that say more of themselves."""
    host = replace(made.HOST, nodes=2, environment={"one": "two"})
    labels = ("single", "ddp x2", "ddp x4", "base", "hot")
    doubts = ("shared device", "shared process", "short energy window", "energy estimated")
    found = [
        replace(record, started="2024-01-01", host=host)
        for label in labels
        for record in made.repeats(label, made.SLOW, doubts=doubts)
    ]
    return [
        *found,
        *(replace(record, started="2024-01-02") for record in made.repeats("tuned", made.FAST, host=host)),
    ]


def two_metered() -> list[Record]:
    """Energy of too few runs, and of runs of which some reading is missing, none, or made in another way."""
    ways = {"device": "cuda", "host": joules.PAIR}
    known = joules.runs("single", [2.0] * 2, {"cuda:0": 100.0, "cuda:1": 20.0}, **ways)
    other = joules.runs("ddp x2", [0.8] * 2, {"cuda:0": 110.0, "cuda:1": 110.0}, ways=2, **ways)
    lame = [_without(record, "test") for record in joules.runs("hot", [2.0], {"cuda:0": 90.0}, **ways)]
    still = joules.runs("base", [2.0], {"cuda:0": 0.0}, **ways)
    mixed = joules.runs("wide", [2.0] * 2, {"cuda:0": 90.0}, **ways)
    mixed += joules.runs("wide", [2.0], {"cuda:0": 90.0}, first=7, how="sampled", **ways)
    return [*known, *other, *lame, *still, *mixed]


def _without(record: Record, phase: str) -> Record:
    return replace(record, readings=tuple(one for one in record.readings if one.phase != phase))


def generated() -> list[Record]:
    full = replace(made.GENERATED, padding=0.1, skipped=2)
    rows = [*made.repeats("single", made.SLOW, data=full), *made.repeats("ddp x2", made.SLOW, ways=2, data=full)]
    return [replace(record, prepare_s=3.0) for record in rows]


CAMPAIGNS: dict[str, Callable[[], list[Record]]] = {
    **{name: of for name, of in cases.CAMPAIGNS.items() if name not in ("hostile", "troubled")},
    "troubled": troubled,
    "doubted": doubted,
    "worse": worse,
    "lower": lower,
    "aimed": aimed,
    "aimed in vain": aimed_in_vain,
    "small": small,
    "metered": metered,
    "idle pair": joules.pair_campaign,
    "unmetered": unmetered,
    "scaled": scaled,
    "profiled": profiled,
    "tuned": tuned,
    "tuned in one order": lambda: tuned("hot"),
    "tuned in two runs": lambda: tuned(count=2),
    "tuned from nothing": lambda: [*tuned("single", "hot"), made.make("single", outcome="failed", reason=REASON)],
    "sitting": sitting,
    "aimed and metered": aimed_metered,
    "crowded": crowded,
    "two metered": two_metered,
    "one kind of time": lambda: [
        replace(one, phases=replace(one.phases, validation_s=None, test_s=None) if one.phases else None)
        for one in made.repeats("single", made.SLOW) + made.repeats("ddp x2", [2.3] * 5, ways=2)
    ],
    "alone": lambda: made.repeats("single", made.SLOW),
    "no baseline": lambda: made.repeats("ddp x2", made.FAST, ways=2),
    "two runs": lambda: made.repeats("single", made.SLOW[:2]) + made.repeats("ddp x2", made.FAST[:2], ways=2),
    "generated": generated,
}


def told(records: Sequence[Record]) -> tuple[tuple[Summary, ...], Annex, Matter, About]:
    """All that the writers are given, in the language that is spoken."""
    records = learned(records)
    rows = summarise(records, "single")
    beside = published(ENTRIES, SOURCE, rows, quick=len(rows) > 2)
    shares = attributions(records, rows, "tuned")
    epochs = by_epoch(records, rows)
    about = replace(seen(records), command="escala run", quick=True, source="1", overrides=("1",))
    matter = Matter(rows, epochs, (TRACE,) if len(rows) < 4 else (), beside, shares)
    return rows, Annex(beside, epochs, shares), matter, about
