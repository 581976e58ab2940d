"""Records in, rows of a table out: repeats put together, compared with the baseline, doubts raised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from escala.analyse import energy_rows
from escala.analyse.bootstrap import interval_of
from escala.analyse.changed import refuse_changed_data
from escala.analyse.compare import Block, against, blocks, point_order, with_noise
from escala.analyse.doubts import Case, doubts_of
from escala.analyse.execution_words import execution_words, precision_words
from escala.analyse.group import Group, grouped, point_key, samples_of
from escala.analyse.row import Interval, Summary
from escala.analyse.time_shares import shares_of
from escala.analyse.to_score import alike, measured
from escala.terms.experiment import MeasureSpec
from escala.terms.record import USER_LINES, Record

TOLERANCE = MeasureSpec().tolerance


def summarise(
    records: Sequence[Record],
    baseline: str | None = None,
    points: Sequence[Mapping[str, Any]] = (),
    tolerance: float = TOLERANCE,
    grid_g_per_kwh: float | None = None,
    labels: Sequence[str] = (),
) -> tuple[Summary, ...]:
    """One summary a row, block by block: hosts as they were met, points as in `points`, the baseline first.

    `baseline` is a label; left out, the label of the first recorded run that has times. Points that `points` leaves
    out follow by value. Rows are compared within one point, one data content and one kind of host only. `tolerance`
    and `grid_g_per_kwh` are those of `measure`. Rows with times follow in the order of `labels`; of those that it
    leaves out, fewer ways first. Raises EscalaError DATA-HASH where repeats of one trial saw different data.
    """
    measured_rows = rows_of(records, grid_g_per_kwh)
    if not measured_rows:
        return ()
    label = baseline if baseline is not None else _first_timed(group for _, group in measured_rows)
    told = {"baseline": label, "tolerance": tolerance}
    rows = [(replace(row, **told), group) for row, group in measured_rows]
    places = {label: place for place, label in enumerate(labels)}
    group_of = {id(row): group for row, group in rows}
    found: list[Summary] = []
    for block in _ordered(blocks(row for row, _ in rows), points):
        found += sorted(
            _compared(block, group_of, records[0].host.likeness),
            key=lambda row: (not row.is_baseline, row.runs == 0, places.get(row.label, len(places)), row.ways),
        )
    return tuple(found)


def rows_of(records: Sequence[Record], grid_g_per_kwh: float | None = None) -> tuple[tuple[Summary, Group], ...]:
    """Every row by itself, compared with none, and the runs that it comes of, in recorded order.

    Raises EscalaError DATA-HASH as `summarise` does.
    """
    groups = grouped(records)
    refuse_changed_data(groups)
    return tuple((replace(_measured(one), **energy_rows.measured(one, grid_g_per_kwh)), one) for one in groups)


def _compared(
    block: Sequence[Summary], group_of: dict[int, Group], first_likeness: tuple[str, ...]
) -> Iterable[Summary]:
    baseline = next((row for row in block if row.label == row.baseline and row.runs), None)
    done = []
    for row in block:
        group = group_of[id(row)]
        compared = against(row, baseline) if baseline else row
        other = None if row is baseline else baseline
        case = Case(compared, group.done, group.timed, other, first_likeness)
        done.append(replace(compared, doubts=doubts_of(case)))
    return with_noise(done)


def _first_timed(groups: Iterable[Group]) -> str | None:
    return next((group.timed[0].trial.label for group in groups if group.timed), None)


def _ordered(found: Sequence[Block], points: Sequence[Mapping[str, Any]]) -> list[Block]:
    hosts = list(dict.fromkeys(block[0].likeness for block in found))
    places = {point_key(point): place for place, point in enumerate(points)}

    def order(block: Block) -> tuple[Any, ...]:
        point = block[0].point
        return hosts.index(block[0].likeness), places.get(point_key(point), len(places)), point_order(point)

    return sorted(found, key=order)


def _measured(group: Group) -> Summary:
    """What the runs of one group gave, before any comparison."""
    done = group.done
    timed = group.timed
    phases = [record.phases for record in timed if record.phases]
    first = group.records[0]
    shown = done[0] if done else first
    trial = first.trial
    by_steps = trial.train.steps is not None
    until = trial.train.until is not None
    data = next((record.data for record in group.records if record.data), None)
    return Summary(
        label=trial.label,
        point=trial.point,
        workload=trial.workload,
        data=data.name if data else trial.data,
        origin=data.origin if data else None,
        digest=group.digest,
        strategy=trial.strategy.name,
        device=trial.strategy.device,
        ways=trial.strategy.ways,
        seats=len(trial.seats),
        batch=trial.batch,
        seat_batch=tuple(seat.batch for seat in trial.seats),
        epochs=None if by_steps else trial.train.epochs,
        steps=alike([record.steps for record in done]) if until else shown.steps if done else trial.train.steps,
        samples=alike([samples_of(record) for record in done]) if until else samples_of(shown) if done else None,
        precision=precision_words(shown.execution or trial.execution),
        execution=execution_words(shown.execution or trial.execution),
        threads=sum(seat.threads for seat in trial.seats),
        user_lines=_user_lines(done),
        outcomes=_counts([record for record in group.records if record not in group.profiled]),
        reason=next((record.reason for record in group.records if record.outcome != "done" and record.reason), None),
        runs=len(timed),
        setup_s=interval_of(record.setup_s for record in timed),
        epoch_s=None if by_steps else interval_of(_epoch_s(record) for record in timed),
        train_s=interval_of(phase.train_s for phase in phases),
        validation_s=interval_of(phase.validation_s for phase in phases),
        test_s=interval_of(phase.test_s for phase in phases),
        total_s=None if by_steps else interval_of(phase.total_s for phase in phases),
        samples_per_second=interval_of(record.samples_per_second for record in timed),
        score=interval_of((record.score.value for record in done if record.score), any_sign=True),
        score_name=next((record.score.name for record in done if record.score), None),
        parameters=next((r.parameters for r in (*done, *group.records) if r.parameters is not None), None),
        memory_bytes=_peaks(record.memory_bytes for record in done or group.records),
        memory_estimate_bytes=_peaks(record.memory_estimate_bytes for record in group.records),
        devices=tuple(
            dict.fromkeys(
                device for record in group.records for seat in record.trial.seats for device in seat.devices
            )
        ),
        likeness=group.likeness,
        score_better=next((record.score.better for record in done if record.score), "higher"),
        other_scores=_other_scores(done),
        prepare_s=max((r.prepare_s for r in group.records if r.prepare_s is not None), default=None),
        padding=data.padding if data else None,
        skipped=data.skipped if data else 0,
        time_shares=shares_of(group.profiled),
        **measured(group),
    )


def _user_lines(done: Sequence[Record]) -> int | None:
    told = (record.software.get(USER_LINES, "") for record in done)
    return next((int(lines) for lines in told if lines.isdecimal()), None)


def _other_scores(done: Sequence[Record]) -> dict[str, Interval]:
    values: dict[str, list[float]] = {}
    for record in done:
        for score in record.other_scores:
            values.setdefault(score.name, []).append(score.value)
    found = {name: interval_of(of_one, any_sign=True) for name, of_one in values.items()}
    return {name: one for name, one in found.items() if one is not None}


def _epoch_s(record: Record) -> float | None:
    return record.phases.train_s / len(record.epochs) if record.phases and record.epochs else None


def _counts(records: Sequence[Record]) -> dict[str, int]:
    found: dict[str, int] = {}
    for record in records:
        found[record.outcome] = found.get(record.outcome, 0) + 1
    return found


def _peaks(of_each: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for peaks in of_each:
        for device, peak in peaks.items():
            found[device] = max(peak, found.get(device, 0))
    return found
