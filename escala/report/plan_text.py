"""What `escala plan` shows: every distinct row of a campaign, seat by seat, before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from escala.analyse.compare import point_text
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain
from escala.analyse.wording import counted, size
from escala.plan.estimate import Estimate
from escala.report.screen import columns_of, drawn, notes
from escala.terms.trial import Seat, Trial

Memory = Mapping[str, Mapping[str, Estimate]]
"""Trial's id -> device -> what is expected on it."""


def plan_text(
    trials: Sequence[Trial],
    memory: Memory | None = None,
    unknown: Mapping[str, str | None] | None = None,
    *,
    width: int | None = None,
    colour: bool = False,
) -> str:
    """A line for each label and point in the order given, its seats below each other, its repeats counted.

    What is unfit follows, and by trials' ids why the memory of some is `unknown`. The expected peak of `memory` is
    that of a seat's device, with all seats that share it. `width` in columns; left out, the terminal's.
    """
    return drawn(_parts(trials, memory or {}, unknown or {}), columns_of(width), colour=colour)


def plan_plain(trials: Sequence[Trial], memory: Memory) -> list[dict[str, Any]]:
    """The trials as plain data, each with `memory_estimate`: device -> parts and peak in bytes."""
    return [
        msgspec.to_builtins(trial) | {"memory_estimate": msgspec.to_builtins(memory.get(trial.id, {}))}
        for trial in trials
    ]


def _parts(trials: Sequence[Trial], memory: Memory, unknown: Mapping[str, str | None]) -> Iterator[RenderableType]:
    if not trials:
        yield Text("The plan holds no trial.")
        return
    rows = _distinct(trials)
    runs = sum(len(same) for same in rows if same[0].unfit is None)
    yield Text(f"{counted(runs, 'run')}, one after another", style="bold")
    yield Text("Batches are global; a seat sees its rows of each of them.", style="dim")
    fitting: dict[str, list[list[Trial]]] = {}
    for same in rows:
        if same[0].unfit is None:
            fitting.setdefault(point_text(same[0].point), []).append(same)
    for heading, block in fitting.items():
        yield Text("")
        if heading:
            yield Text(heading, style="bold")
        yield _grid(block, memory)
    without = [(one, unknown.get(one.id)) for one, *_ in rows if one.unfit is None]
    unfit = [(one, one.unfit) for one, *_ in rows]
    for heading, found in (("Memory not known", without), ("Does not fit", unfit)):
        told = [(_row_name(one), plain(reason, LONGEST_REASON)) for one, reason in found if reason is not None]
        if told:
            yield Text("")
            yield Text(heading, style="bold")
            yield notes(told)


def _distinct(trials: Sequence[Trial]) -> list[list[Trial]]:
    """Trials that differ in their repeat alone, and in what it is for, put together."""
    found: dict[bytes, list[Trial]] = {}
    for trial in trials:
        bare = msgspec.structs.replace(trial, id="", seed=0, repeat=0, role="both")
        found.setdefault(msgspec.json.encode(bare, enc_hook=str, order="deterministic"), []).append(trial)
    return list(found.values())


def _repeats(same: Sequence[Trial]) -> str:
    """`5`, or `10 + 3 for energy + 1 profiled`."""
    energy, profiled = (sum(trial.role == role for trial in same) for role in ("energy", "profile"))
    others = [f"{energy} for energy" if energy else "", f"{profiled} profiled" if profiled else ""]
    return " + ".join([str(len(same) - energy - profiled), *(part for part in others if part)])


def _grid(rows: Sequence[Sequence[Trial]], memory: Memory) -> RenderableType:
    grid = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    grid.add_column("strategy", overflow="fold")
    grid.add_column("batch", justify="right", no_wrap=True)
    grid.add_column("budget", no_wrap=True)
    grid.add_column("repeats", justify="right", no_wrap=True)
    grid.add_column("rank", justify="right", no_wrap=True)
    grid.add_column("device", overflow="fold")
    grid.add_column("threads", justify="right", no_wrap=True)
    grid.add_column("rows (per seat)", justify="right", no_wrap=True)
    grouped = any(seat.replica is not None for same in rows for seat in same[0].seats)
    if grouped:
        grid.add_column("replica", justify="right", no_wrap=True)
    told = any(memory.get(same[0].id) for same in rows)
    if told:
        grid.add_column("memory", justify="right", no_wrap=True)
    seat_cells = (*_SEAT, lambda seat: str(seat.share)) if grouped else _SEAT
    for same in rows:
        trial = same[0]
        cells = [plain(trial.label, LONGEST_NAME), f"{trial.batch:,}", _budget(trial), _repeats(same)]
        cells += ["\n".join(of(seat) for seat in trial.seats) for of in seat_cells]
        if told:
            expected = memory.get(trial.id, {})
            cells.append("\n".join(_largest(seat, expected) for seat in trial.seats))
        grid.add_row(*(Text(cell) for cell in cells))
    return grid


def _largest(seat: Seat, expected: Mapping[str, Estimate]) -> str:
    known = [expected[device].peak for device in seat.devices if device in expected]
    return size(max(known)) if known else "not known"


def _budget(trial: Trial) -> str:
    if trial.train.steps is not None:
        return counted(trial.train.steps, "step")
    epochs = counted(trial.train.epochs or 0, "epoch")
    return epochs if trial.train.until is None else f"up to {epochs}, until {trial.train.until:.6g}"


def _row_name(trial: Trial) -> str:
    return ", ".join(part for part in (plain(trial.label, LONGEST_NAME), point_text(trial.point)) if part)


def _device(seat: Seat) -> str:
    return plain(" + ".join(seat.devices)) + (f" on node {seat.node}" if seat.node else "")


def _rows(seat: Seat) -> str:
    return f"{seat.rows[0]:,} to {seat.rows[1] - 1:,} ({seat.batch:,})" if seat.batch else "none (0)"


_SEAT: tuple[Callable[[Seat], str], ...] = (
    lambda seat: str(seat.rank),
    _device,
    lambda seat: str(seat.threads),
    _rows,
)
