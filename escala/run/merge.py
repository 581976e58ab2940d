"""Seats -> Record: parts of the loss are added up, times are those of the slowest seat, peaks the highest."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from escala.execution.schedule import landmarks, total_steps
from escala.plan.memory import estimates, peaks
from escala.plan.preflight import Facts
from escala.run.assignment import EpochTally, Failure, SeatResult
from escala.run.to_score import to_score
from escala.terms.doubts import Doubt
from escala.terms.host import Host
from escala.terms.record import Epoch, Phases, Reading, Record, Score
from escala.terms.trial import Trial

# Float32 has nine significant digits, float64 seventeen; more would only make the log longer.
_DIGITS = {"fp64": 17}


def done_record(
    trial: Trial, host: Host, facts: Facts, results: Sequence[SeatResult], doubts: Sequence[Doubt]
) -> Record:
    """The record of a trial that came to its end, or whose loss was not finite. `results` by rank."""
    first = results[0]
    train_s = max(result.train_s for result in results)
    scores = tuple(
        Score(metric.name, value, first.test_rows, metric.better)
        for metric, value in zip(facts.metrics if first.test_scores else (), first.test_scores, strict=True)
    )
    if not first.settled:
        doubts = (*doubts, "not warm")
    phases = Phases(train_s, _longest([r.validation_s for r in results]), _longest([r.test_s for r in results]))
    epochs = tuple(_epoch([result.epochs[number] for result in results]) for number in range(len(first.epochs)))
    record = Record(
        id=trial.id,
        trial=trial,
        outcome="done",
        host=host,
        setup_s=max(result.setup_s for result in results),
        phases=phases if trial.role != "profile" else None,
        epochs=epochs,
        block_seconds=first.block_seconds,
        steps_per_block=first.steps_per_block,
        steps=first.steps,
        samples_per_second=first.samples / train_s if train_s > 0 else None,
        score=scores[0] if scores else None,
        other_scores=scores[1:],
        to_score=to_score(trial.train, facts.metrics, epochs, phases, first.steps),
        losses=_losses(trial, results),
        rates=landmarks(trial.train, total_steps(trial.train, facts.use.rows["train"])),
        skipped_steps=first.skipped,
        parameters=first.parameters,
        flops_per_sample=facts.flops_per_sample,
        memory_bytes=_peaks([reading for result in results for reading in result.readings]),
        memory_estimate_bytes=peaks(estimates(trial, facts, host)),
        readings=tuple(reading for result in results for reading in result.readings),
        doubts=tuple(doubts),
        data=facts.use,
        prepare_s=facts.prepare_s,
        shares=tuple(result.shares for result in results if result.shares is not None),
        software=first.software | dict(facts.software) | _unused(facts),
    )
    if first.diverged is None:
        return record
    where = f"at step {first.diverged.step} on rank {first.diverged.rank}"
    return msgspec.structs.replace(
        record, outcome="diverged", reason=f"the loss was not finite {where}", score=None, other_scores=()
    )


def failed_record(trial: Trial, host: Host, facts: Facts, failure: Failure, doubts: Sequence[Doubt]) -> Record:
    """The record of a trial that did not come to its end."""
    return Record(
        id=trial.id,
        trial=trial,
        outcome=failure.outcome,
        reason=failure.reason,
        host=host,
        parameters=facts.parameters,
        flops_per_sample=facts.flops_per_sample,
        memory_bytes=_peaks(failure.readings),
        memory_estimate_bytes=peaks(estimates(trial, facts, host)),
        readings=failure.readings,
        doubts=tuple(doubts),
        data=facts.use,
        prepare_s=facts.prepare_s,
    )


def _epoch(parts: Sequence[EpochTally]) -> Epoch:
    sums = [math.nan if part.loss_sum is None else part.loss_sum for part in parts]
    # A seat counts a batch in which it had rows; the one that had rows in all of them knows the whole count.
    count = max(part.count for part in parts)
    return Epoch(
        train_s=max(part.train_s for part in parts),
        loss=sum(sums) / count if count else math.nan,
        order=parts[0].order,
        validation_s=_longest([part.validation_s for part in parts]),
        score=parts[0].score,
    )


def _losses(trial: Trial, results: Sequence[SeatResult]) -> tuple[float, ...]:
    digits = _DIGITS.get(trial.execution.precision, 9)
    columns = zip(*(result.losses for result in results), strict=True)
    return tuple(_rounded(sum(math.nan if part is None else part for part in column), digits) for column in columns)


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _unused(facts: Facts) -> dict[str, str]:
    """Said in the record, since looking for them costs time in every step."""
    return {"parameters without gradient": ", ".join(facts.unused)} if facts.unused else {}


def _longest(times: Sequence[float | None]) -> float | None:
    known = [time for time in times if time is not None]
    return max(known) if known else None


def _peaks(readings: Sequence[Reading]) -> dict[str, int]:
    """Peak bytes by device; processes share the host's memory, so their peaks on it are added up."""
    peaks = dict[str, int]()
    for reading in readings:
        if reading.what == "peak memory" and reading.value is not None:
            known = peaks.get(reading.where, 0)
            size = int(reading.value)
            peaks[reading.where] = known + size if reading.where == "cpu" else max(known, size)
    return peaks
