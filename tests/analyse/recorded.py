"""Records made by hand, for tests of what is drawn from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from msgspec.structs import replace

from escala.terms.doubts import Doubt
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.host import Device, Host
from escala.terms.record import DataUse, Epoch, Outcome, Phases, Record, Score, ToScore
from escala.terms.trial import Seat, StrategyUse, Trial

HOST = Host(
    cpu="Xeon Test", cores=2, memory_bytes=8 * 2**30, system="Linux 6.1", software={"torch": "2.13.0"}, name="one"
)
OTHER_TORCH = Host(
    cpu="Xeon Test", cores=2, memory_bytes=8 * 2**30, system="Linux 6.1", software={"torch": "2.14.0"}, name="one"
)
OTHER_CPU = Host(
    cpu="Other Chip", cores=2, memory_bytes=8 * 2**30, system="Linux 6.1", software={"torch": "2.13.0"}, name="two"
)
GPUS = Host(
    cpu="Xeon Test",
    cores=8,
    memory_bytes=64 * 2**30,
    system="Linux 6.1",
    devices=tuple(Device("cuda", index, "Test GPU", 80 * 2**30) for index in range(4)),
    software={"torch": "2.13.0"},
)
DATA = DataUse("fashion-mnist", "real", "/data", "d1", {"train": 6000, "validation": 500, "test": 1000}, 10)
GENERATED = DataUse("synthetic", "generated", "drawn", "d2", {"train": 6000, "test": 1000}, 10)


def seats_of(ways: int, batch: int, host: Host, device: str) -> tuple[Seat, ...]:
    """Equal seats, threads divided among them."""
    names = [device if device == "cpu" else f"{device}:{way}" for way in range(ways)]
    cuts = [batch * way // ways for way in range(ways + 1)]
    threads = max(1, host.cores // ways)
    return tuple(Seat(way, 0, (names[way],), (cuts[way], cuts[way + 1]), threads) for way in range(ways))


def make(
    label: str = "single",
    repeat: int = 0,
    *,
    strategy: str = "",
    ways: int = 1,
    seats: int | None = None,
    device: str = "cpu",
    batch: int = 64,
    train_s: float = 2.0,
    validation_s: float | None = 0.1,
    test_s: float | None = 0.2,
    score: float | None = 0.87,
    epochs: int = 2,
    steps: int | None = None,
    blocks: Sequence[float] = (0.25, 0.26, 0.25),
    outcome: Outcome = "done",
    reason: str | None = None,
    point: dict[str, Any] | None = None,
    host: Host = HOST,
    data: DataUse | None = DATA,
    doubts: tuple[Doubt, ...] = (),
    threads: int | None = None,
    memory: dict[str, int] | None = None,
) -> Record:
    """One record; a trial that was not done carries no figures. `steps` set makes it a budget of steps."""
    point = point or {}
    sitting = seats_of(seats or ways, batch, host, device)
    if threads is not None:
        sitting = tuple(Seat(seat.rank, 0, seat.devices, seat.rows, threads) for seat in sitting)
    train = TrainSpec(batch=batch, epochs=None if steps else epochs, steps=steps)
    trial = Trial(
        id=f"{label}|{point}|{host.likeness}|{batch}|{data.digest if data else None}|{repeat}",
        label=label,
        workload="mlp",
        options={},
        data=data.name if data else "fashion-mnist",
        validation=1 / 12,
        limit=None,
        strategy=StrategyUse(strategy or label.split()[0], ways, device),
        execution=ExecutionSpec(),
        train=train,
        batch=batch,
        seats=() if outcome == "unfit" else sitting,
        seed=0,
        repeat=repeat,
        point=point,
        unfit=reason if outcome == "unfit" else None,
    )
    if outcome != "done":
        return Record(id=trial.id, trial=trial, outcome=outcome, host=host, reason=reason)
    made = steps if steps else epochs * -(-6000 // batch)
    phases = Phases(train_s) if steps else Phases(train_s, validation_s, test_s)
    return Record(
        id=trial.id,
        trial=trial,
        outcome="done",
        host=host,
        setup_s=3.0,
        phases=phases,
        epochs=() if steps else tuple(Epoch(train_s / epochs, 0.5, f"o{n}") for n in range(epochs)),
        block_seconds=tuple(blocks),
        steps_per_block=50,
        steps=made,
        samples_per_second=(made * batch if steps else 6000 * epochs) / train_s,
        score=Score("accuracy", score, 1000) if score is not None and not steps else None,
        losses=(2.3, 1.1),
        parameters=669706,
        memory_bytes=memory or {device: 300 * 2**20 for seat in sitting for device in seat.devices},
        doubts=doubts,
        data=data,
        wall_s=6.0,
    )


def repeats(label: str, times: Sequence[float], scores: Sequence[float] | None = None, **more: Any) -> list[Record]:
    """One record for each training time."""
    scored = scores or [0.87 + 0.001 * (n % 3) for n in range(len(times))]
    pairs = enumerate(zip(times, scored, strict=True))
    return [make(label, n, train_s=time, score=score, **more) for n, (time, score) in pairs]


SLOW = (2.00, 2.02, 1.98, 2.01, 1.99)
FAST = (1.05, 1.06, 1.04, 1.05, 1.07)


def clean_campaign() -> list[Record]:
    """`single` against a `ddp x2` that is nearly twice as fast, and one way inside the wrapper."""
    wrapped = repeats("ddp x1", [time * 1.05 for time in SLOW], host=GPUS, device="cuda")
    return [
        *repeats("single", SLOW, host=GPUS, device="cuda"),
        *wrapped,
        *repeats("ddp x2", FAST, ways=2, host=GPUS, device="cuda"),
    ]


def troubled_campaign() -> list[Record]:
    """Every outcome that is not `done`, beside a measured baseline."""
    return [
        *repeats("single", SLOW),
        make("ddp x4", ways=4, outcome="unfit", reason="needs 4 CPU cores; this host has 2", data=None),
        *repeats("ddp x2", (1.5, 1.6, 1.55), ways=2),
        make("ddp x2", 3, ways=2, outcome="failed", reason="rank 1 was killed by signal 9 (SIGKILL)", data=None),
        make("wide", batch=4096, outcome="out of memory", reason="std::bad_alloc", data=None),
        make("hot", outcome="diverged", reason="the loss is not finite at step 12 on rank 0"),
        make("cut", outcome="interrupted", reason="stopped by the keyboard"),
    ]


def swept_campaign() -> list[Record]:
    """Two batches, recorded with the greater one first."""
    found: list[Record] = []
    for batch in (256, 64):
        point = {"train.batch": batch}
        found += repeats("single", SLOW, batch=batch, point=point)
        found += repeats(
            "ddp x2", FAST if batch == 256 else (6.0, 6.1, 6.2, 6.0, 6.1), ways=2, batch=batch, point=point
        )
    return found


def two_hosts() -> list[Record]:
    """The same rows on a second machine."""
    return [
        *repeats("single", SLOW),
        *repeats("ddp x2", (2.4, 2.5, 2.45, 2.4, 2.5), ways=2),
        *repeats("single", (1.0, 1.01, 1.0, 1.02, 1.0), host=OTHER_CPU),
        *repeats("ddp x2", (1.3, 1.31, 1.3, 1.32, 1.3), ways=2, host=OTHER_CPU),
    ]


def aimed(
    label: str,
    epochs: Sequence[int | None],
    *,
    until: float = 0.9,
    limit: int = 10,
    epoch_s: float = 1.0,
    metric: str = "accuracy",
    better: Literal["higher", "lower"] = "higher",
    scores: Sequence[float] | None = None,
    **more: Any,
) -> list[Record]:
    """Runs with a target that each reached it in so many epochs of `epoch_s` seconds; None: not within `limit`."""
    found = []
    for number, count in enumerate(epochs):
        made = count or limit
        score = scores[number] if scores else until
        one = make(label, number, epochs=made, train_s=made * epoch_s, validation_s=made * 0.1, score=score, **more)
        trial = replace(one.trial, train=replace(one.trial.train, epochs=limit, until=until))
        total_s = made * (epoch_s + 0.1)
        account = ToScore(metric, until, count is not None, made, one.steps, made * epoch_s, total_s, better)
        told = replace(one, trial=trial, to_score=account if one.outcome in ("done", "diverged") else None)
        found.append(replace(told, score=replace(told.score, name=metric, better=better) if told.score else None))
    return found
