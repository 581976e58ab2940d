"""One seat whose training loop is somebody else's. The clock is escala's: a peer calls it at the edges of its epochs.

A peer's epoch is one block: nothing in it is waited for but its end.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from escala.data.base import Split
from escala.data.prepared import load as load_splits
from escala.execution.order import Order, digest_of, order_of
from escala.execution.schedule import full_rate
from escala.meters.seats import SEAT_METERS
from escala.peers import PEERS, load
from escala.peers.base import Floats, Peer, Task
from escala.peers.lines import user_lines_of
from escala.run.assignment import Assignment, Divergence, EpochTally, SeatResult, Span
from escala.run.own import draw_anew
from escala.terms.events import TrialMoved
from escala.terms.record import USER_LINES, Reading
from escala.terms.trial import Trial
from escala.workloads import workload
from escala.workloads.base import Metric, Workload

_CONVERTED = 4096
"""Rows made ready for the network at a time."""


class Diverged(Exception):
    """A loss was not finite; raised through the peer's loop, which ends with it."""


@dataclass(frozen=True)
class Part:
    """Rows to be judged: what the network takes, and a function from its outputs to the metrics."""

    inputs: NDArray[Any]
    score: Callable[[Floats], tuple[float, ...]]


@dataclass
class Warming:
    """The edges of the warm-up: nothing is kept but when it began."""

    began: float | None = None

    def training_begins(self) -> None:
        if self.began is None:
            self.began = time.monotonic()

    def training_ended(self, losses: Sequence[float] | Floats) -> None:
        del losses

    def validation_begins(self) -> None:
        pass

    def validated(self, outputs: Floats) -> None:
        del outputs


@dataclass
class Clocked:
    """The edges of the training that counts: times, losses, scores. `batch` is global, `rows` those of training."""

    orders: Sequence[Order]
    batch: int
    validation: Part | None
    synchronise: Callable[[], None]
    say: Callable[[TrialMoved], None]
    mark: Callable[[int], None]
    clock: Callable[[], float] = time.monotonic
    edge: Callable[[], None] = lambda: None
    first: float | None = None
    losses: list[float] = field(default_factory=list)
    epochs: list[EpochTally] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    diverged: Divergence | None = None
    _began: float = 0.0

    @property
    def steps_per_epoch(self) -> int:
        return -(-len(self.orders[0]) // self.batch)

    def training_begins(self) -> None:
        self.synchronise()
        self.edge()
        self._began = self.clock()
        if self.first is None:
            self.first = self._began

    def training_ended(self, losses: Sequence[float] | Floats) -> None:
        self.synchronise()
        ended = self.clock()
        epoch, order = len(self.epochs), self.orders[len(self.epochs)]
        self.spans.append(Span("train", epoch + 1, self._began, ended))
        own = [float(loss) for loss in losses]
        if len(own) != self.steps_per_epoch:
            raise RuntimeError(f"the peer told of {len(own)} steps in an epoch of {self.steps_per_epoch}")
        bad = next((place for place, loss in enumerate(own) if not math.isfinite(loss)), None)
        if bad is not None:
            self.diverged = Divergence(len(self.losses) + bad, 0)
            own = own[: bad + 1]
        self.losses += own
        sizes = [min(self.batch, len(order) - start) for start in range(0, len(order), self.batch)]
        loss_sum = sum(loss * size for loss, size in zip(own, sizes, strict=False))
        self.epochs.append(EpochTally(ended - self._began, digest_of(order), loss_sum, len(order)))
        self.mark(len(self.losses))
        self.say(self._moved("train", epoch, len(order) / (ended - self._began) if ended > self._began else None))
        if bad is not None:
            raise Diverged

    def validation_begins(self) -> None:
        self.synchronise()
        self.edge()
        self._began = self.clock()

    def validated(self, outputs: Floats) -> None:
        if self.validation is None:
            raise RuntimeError("the peer judged rows that there are not")
        score, *_ = self.validation.score(outputs)
        ended = self.clock()
        number = len(self.epochs)
        self.spans.append(Span("validation", number, self._began, ended))
        self.epochs[-1] = msgspec.structs.replace(self.epochs[-1], validation_s=ended - self._began, score=score)
        self.mark(len(self.losses))
        self.say(self._moved("validation", number - 1))

    def _moved(self, phase: str, epoch: int, pace: float | None = None) -> TrialMoved:
        return TrialMoved(
            phase=phase,
            epoch=epoch + 1,
            epochs=len(self.orders),
            step=len(self.losses),
            steps=len(self.orders) * self.steps_per_epoch,
            samples_per_second=pace,
            loss=self.losses[-1],
        )


def sit_with_peer(
    job: Assignment,
    say: Callable[[TrialMoved], None],
    mark: Callable[[int], None],
    edge: Callable[[], None] = lambda: None,
) -> SeatResult:
    """Give the peer the trial's work, let it warm up for an epoch, and time its training.

    Set-up ends where the first epoch that counts begins, so whatever the peer does before that is part of it.
    """
    trial, (seat,) = job.trial, job.trial.seats
    assert trial.peer is not None
    torch.set_num_threads(seat.threads)
    meters = [SEAT_METERS[name](seat.devices) for name in job.meters if name in SEAT_METERS]
    for meter in meters:
        meter.start()
    work = workload(trial.workload, trial.options)
    torch.manual_seed(trial.seed)
    model = work.model()
    splits = load_splits(Path(job.data))
    parts = {name: _part(work, split) for name, split in splits.items() if len(split.targets)}
    validation, test = parts.get("validation"), parts.get("test")
    task = Task(
        workload=work,
        model=model,
        train=msgspec.structs.replace(trial.train, lr=full_rate(trial.train), seed=trial.seed),
        devices=seat.devices,
        threads=seat.threads,
        inputs=parts["train"].inputs,
        targets=np.array(splits["train"].targets),
        validation=validation.inputs if validation else None,
        chunk=work.evaluation_rows,
    )
    peer = load(trial.peer)(task)
    orders = [order_of(trial.seed, epoch, len(task.targets)) for epoch in range(trial.train.epochs or 0)]
    say(TrialMoved(phase="warm-up", epochs=len(orders)))
    warming = Warming()
    draw_anew(trial.seed, 0)
    peer.train(orders[:1], warming)
    if test is not None:
        # Its rows may be cut into other shapes than those of validation.
        peer.predict(test.inputs)
    peer.synchronise()
    mark(0)
    draw_anew(trial.seed, 0)
    clocked = Clocked(orders, trial.batch, validation, peer.synchronise, say, mark, edge=edge)
    test_s, test_scores = None, tuple[float, ...]()
    try:
        peer.train(orders, clocked)
    except Diverged:
        pass
    else:
        if test is not None:
            test_s, test_scores = _tested(peer, test, clocked)
    edge()
    if len(clocked.epochs) < len(orders) and clocked.diverged is None:
        raise RuntimeError(f"the peer {trial.peer} trained {len(clocked.epochs)} of {len(orders)} epochs")
    readings = _readings([reading for meter in meters for reading in meter.stop()], peer)
    return _result(job, clocked, warming, test_s, test_scores, len(splits["test"].targets), model, readings)


def _part(work: Workload, split: Split) -> Part:
    """Converted once, before anything is timed: a peer's loop is not charged for it."""
    raw, targets = np.array(split.inputs), torch.from_numpy(np.array(split.targets))
    cuts = [slice(start, start + _CONVERTED) for start in range(0, len(raw), _CONVERTED)]
    converted = [work.example(torch.from_numpy(raw[cut]), targets[cut], torch.float32) for cut in cuts]
    wanted = torch.cat([one for _, one in converted])
    judge = work.judge(split.side.read_bytes() if split.side else b"")

    def score(outputs: Floats) -> tuple[float, ...]:
        if len(outputs) != len(wanted):
            raise RuntimeError(f"{len(outputs)} rows were judged, but the split has {len(wanted)}")
        return _scores(work.metrics, judge(torch.from_numpy(np.array(outputs)), wanted), len(wanted))

    return Part(torch.cat([one for one, _ in converted]).numpy(), score)


def _scores(metrics: Sequence[Metric], sums: torch.Tensor, rows: int) -> tuple[float, ...]:
    totals = sums.double().reshape(-1).tolist()
    return tuple(metric.of_mean(total / max(1, rows)) for metric, total in zip(metrics, totals, strict=True))


def _tested(peer: Peer, test: Part, clocked: Clocked) -> tuple[float, tuple[float, ...]]:
    clocked.say(TrialMoved(phase="test", epoch=len(clocked.epochs), epochs=len(clocked.orders)))
    peer.synchronise()
    clocked.edge()
    began = clocked.clock()
    scores = test.score(peer.predict(test.inputs))
    ended = clocked.clock()
    clocked.spans.append(Span("test", len(clocked.epochs), began, ended))
    return ended - began, scores


def _readings(found: Sequence[Reading], peer: Peer) -> tuple[Reading, ...]:
    """With the peaks of the peer's own allocator in the place of torch's, which has nothing on those devices."""
    peaks = peer.peak_memory()
    if peaks is None:
        return tuple(found)
    kept = [one for one in found if one.what != "peak memory" or one.where not in peaks]
    own = [Reading("peak memory", where, float(peak), "B", "counter") for where, peak in peaks.items()]
    return (*kept, *own)


def _result(
    job: Assignment,
    clocked: Clocked,
    warming: Warming,
    test_s: float | None,
    test_scores: tuple[float, ...],
    test_rows: int,
    model: torch.nn.Module,
    readings: tuple[Reading, ...],
) -> SeatResult:
    train_s = [epoch.train_s for epoch in clocked.epochs]
    validation_s = [epoch.validation_s for epoch in clocked.epochs if epoch.validation_s is not None]
    assert clocked.first is not None
    return SeatResult(
        setup_s=clocked.first - job.launched,
        first_step_s=(warming.began or clocked.first) - job.launched,
        # A peer warms up for one whole epoch, and whether its times have settled then is not looked into.
        settled=True,
        steps_per_block=clocked.steps_per_epoch,
        block_seconds=tuple(train_s),
        losses=tuple(clocked.losses),
        epochs=tuple(clocked.epochs),
        steps=len(clocked.losses),
        samples=sum(epoch.count for epoch in clocked.epochs),
        train_s=sum(train_s),
        validation_s=sum(validation_s) if validation_s else None,
        test_s=test_s,
        test_scores=test_scores,
        test_rows=test_rows if test_scores else 0,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        diverged=clocked.diverged,
        readings=readings,
        spans=tuple(clocked.spans),
        software=_software(job.trial),
    )


def _software(trial: Trial) -> dict[str, str]:
    """The peer's packages, and how much of its file a user would write."""
    assert trial.peer is not None
    kind = PEERS[trial.peer]
    own = sys.modules[kind.peer.partition(":")[0]].__file__
    found = {USER_LINES: str(user_lines_of(Path(own or "")))}
    for package in kind.packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            # Installed under another name, such as tensorflow-cpu.
            found[package] = str(getattr(sys.modules.get(package), "__version__", "unknown"))
    return found
