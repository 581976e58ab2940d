"""Summaries as rows of plain text, once for every writer that shows a table to a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from escala.analyse.compare import blocks, headings
from escala.analyse.language import marked, noun, say
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain, reason_text
from escala.analyse.row import Interval, Summary
from escala.analyse.sentences import winner_of
from escala.analyse.verdict import Verdict
from escala.analyse.wording import (
    counted,
    interval_text,
    likeness_text,
    number,
    percent,
    score_name,
    seconds,
    size,
    speedup_text,
)
from escala.report.column import Column
from escala.report.energy_columns import ENERGY, ENERGY_LEGEND, energy_columns, energy_notes
from escala.report.memory_columns import EXPECTED, EXPECTED_LEGEND, HOST, HOST_LEGEND, memory_columns
from escala.report.score_columns import LOST, TIME_TO_SCORE, lost_columns, targets_text, to_score_columns
from escala.terms.doubts import Doubt

MOST_SEATS = 4
"""More per-seat batches than this are shown as their range."""


class Table(Struct, frozen=True):
    """One block of comparable rows.

    `facts` is what all its rows have in common, `notes` what is to be said below it; `winner` the place of the
    winning row; `trouble` holds rows with runs that were not done: their name, and what happened.
    """

    heading: str
    facts: tuple[str, ...]
    columns: tuple[Column, ...]
    winner: int | None
    trouble: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()


def tables(summaries: Sequence[Summary], verdict: Verdict) -> tuple[Table, ...]:
    """One table a block, in the order of the summaries. Every text in it is safe to show as it is."""
    found = blocks(summaries)
    marks = {caution.doubt: caution.mark for caution in verdict.cautions}
    return tuple(_table(block, heading, marks) for block, heading in zip(found, headings(found), strict=True))


def legend(found: Sequence[Table]) -> str:
    """What the columns mean that these tables have."""
    titles = {column.title for table in found for column in table.columns}
    more = [say(text) for title, text in FURTHER.items() if any(one.startswith(say(title)) for one in titles)]
    return " ".join([say(LEGEND), *more])


def _table(block: Sequence[Summary], heading: str, marks: Mapping[Doubt, str]) -> Table:
    rows = [row for row in block if row.outcomes.get("done")]
    winner = winner_of(block)
    varying = [name for name, of in SHARED.items() if len({of(row) for row in rows}) > 1]
    columns = [Column(say("strategy"), tuple(map(_name, rows)), text=True)]
    columns += [Column(say(title), tuple(of(row) for row in rows)) for title, of in WORK.items()]
    if any(row.ways != row.seats for row in rows):
        columns.append(Column(say("ways"), tuple(str(row.ways) for row in rows)))
    columns += [Column(say(name), tuple(SHARED[name](row) for row in rows)) for name in varying]
    columns += [Column(say(title), tuple(of(row) for row in rows)) for title, of in FIGURES.items()]
    columns += [*to_score_columns(rows), _score(rows), *lost_columns(rows), *_other_scores(rows)]
    columns += [
        *memory_columns(rows),
        *energy_columns(rows),
        Column(say(LINES), tuple(str(row.user_lines) if row.user_lines is not None else "" for row in rows)),
        Column(say("doubts"), tuple(" ".join(marks[doubt] for doubt in row.doubts) for row in rows), text=True),
    ]
    return Table(
        heading=heading,
        facts=_facts(block, rows, varying),
        columns=tuple(column for column in columns if any(column.cells)),
        winner=next((place for place, row in enumerate(rows) if row is winner), None),
        notes=energy_notes(rows),
        trouble=tuple((plain(row.label, LONGEST_NAME), _trouble(row)) for row in block if row.attempts > _done(row)),
    )


def _facts(block: Sequence[Summary], rows: Sequence[Summary], varying: Sequence[str]) -> tuple[str, ...]:
    first = rows[0] if rows else block[0]
    work = [
        say(ON_DATA[first.origin], workload=plain(first.workload, LONGEST_NAME), data=plain(first.data, LONGEST_NAME))
    ]
    if rows and first.parameters is not None:
        work.append(say("{count} parameters", count=f"{first.parameters:,}"))
    work += _of_data(block)
    if rows:
        if target := targets_text(rows):
            work.append(target)
        shared = [(name, of(first)) for name, of in SHARED.items() if name not in varying]
        work += [_with_noun(value, NOUNS[name]) if name in NOUNS else value for name, value in shared if value]
    return (", ".join(work), likeness_text(first.likeness))


def _of_data(block: Sequence[Summary]) -> list[str]:
    """What making the data ready took, and what became of them."""
    found = []
    if padding := next((row.padding for row in block if row.padding is not None), None):
        found.append(say("{share} padding", share=percent(padding)))
    if skipped := max(row.skipped for row in block):
        found.append(say("{rows} left out", rows=counted(skipped, "damaged row")))
    if (ready := max((row.prepare_s for row in block if row.prepare_s is not None), default=None)) is not None:
        found.append(say("data made ready in {time}", time=seconds(ready)))
    return found


def _with_noun(value: str, one: str) -> str:
    return f"{value} {noun(one, plural=value != '1')}"


def _name(row: Summary) -> str:
    return plain(row.label, LONGEST_NAME) + (say(" (baseline)") if row.is_baseline else "")


def _batch(row: Summary) -> str:
    if not row.seat_batch:
        return f"{row.batch:,}"
    sizes = list(dict.fromkeys(row.seat_batch))
    if len(sizes) == 1:
        own = f"{sizes[0]:,}"
    elif len(row.seat_batch) <= MOST_SEATS:
        own = " + ".join(f"{size:,}" for size in row.seat_batch)
    else:
        own = say("{low} to {high}", low=f"{min(sizes):,}", high=f"{max(sizes):,}")
    return f"{row.batch:,} ({own})"


def _trouble(row: Summary) -> str:
    counts = {name: count for name, count in row.outcomes.items() if name != "done"}
    if len(counts) == 1 and not _done(row):
        told = say(next(iter(counts)))
    else:
        told = ", ".join(_of_runs(say(name), count, row.attempts) for name, count in counts.items())
    if "out of memory" in counts and not _done(row) and row.peak_bytes is not None:
        told = say("{told} at {memory}", told=told, memory=size(row.peak_bytes))
    return f"{told}: {reason_text(row.reason)}" if row.reason else told


def _of_runs(outcome: str, count: int, attempts: int) -> str:
    return say("{what} {count} of {attempts}", what=outcome, count=count, attempts=attempts)


def _done(row: Summary) -> int:
    return row.outcomes.get("done", 0)


def _runs(row: Summary) -> str:
    # Those that were there for their energy alone are counted where that is told.
    timed = row.attempts - row.energy_only
    return str(row.runs) if row.runs == timed else say("{count} of {whole}", count=row.runs, whole=timed)


def _epochs(row: Summary) -> str:
    if not row.epochs:
        return ""
    return f"{row.epochs:,}" if row.target is None else say("up to {count}", count=f"{row.epochs:,}")


def _total(row: Summary) -> str:
    # With a target it would be the longest where the least was reached.
    return interval_text(row.total_s) if row.total_s and row.target is None else ""


def _median(found: Interval | None, digits: int = 3) -> str:
    return number(found.median, digits) if found else ""


def _efficiency(row: Summary) -> str:
    found = row.efficiency_total or row.efficiency_train
    return percent(found.median) if found else ""


def _rate(row: Summary) -> str:
    if row.samples_per_second is None:
        return ""
    # Without a total this is the figure that rows are ranked by, so how well it is known belongs to it.
    return _median(row.samples_per_second) if row.total_s else interval_text(row.samples_per_second)


def _score(rows: Sequence[Summary]) -> Column:
    names = list(dict.fromkeys(row.score_name for row in rows if row.score_name))
    if len(names) == 1:
        title = score_name(names[0])
        if any(row.score_better == "lower" for row in rows):
            title += say("\n(lower is better)")
        return Column(title, tuple(_median(row.score, 4) for row in rows))
    cells = (f"{score_name(row.score_name)} {_median(row.score, 4)}" if row.score else "" for row in rows)
    return Column(say("score"), tuple(cells))


def _other_scores(rows: Sequence[Summary]) -> list[Column]:
    names = dict.fromkeys(name for row in rows for name in row.other_scores)
    return [Column(score_name(name), tuple(_median(row.other_scores.get(name), 4) for row in rows)) for name in names]


Cell = Callable[[Summary], str]

WORK: dict[str, Cell] = {
    marked("seats"): lambda row: str(row.seats),
    marked("batch\n(per seat)"): _batch,
    marked("runs"): _runs,
}
SHARED: dict[str, Cell] = {
    marked("precision"): lambda row: row.precision,
    marked("execution"): lambda row: plain(row.execution, LONGEST_REASON),
    marked("device"): lambda row: plain(row.device),
    marked("epochs"): lambda row: _epochs(row),
    marked("steps"): lambda row: f"{row.steps:,}" if row.steps is not None else "",
    marked("samples"): lambda row: f"{row.samples:,}" if row.samples is not None else "",
    marked("threads"): lambda row: str(row.threads),
}
"""Said once above the table where all rows agree; a column of its own where they do not."""
NOUNS = {"epochs": "epoch", "steps": "step", "samples": "sample", "threads": "thread"}
"""Of those that are a number of something."""
ON_DATA = {
    "real": marked("{workload} on {data} (real data)"),
    "generated": marked("{workload} on {data} (generated data)"),
    None: marked("{workload} on {data}"),
}
FIGURES: dict[str, Cell] = {
    marked("train\ns/epoch"): lambda row: _median(row.epoch_s),
    marked("train s"): lambda row: "" if row.epoch_s else _median(row.train_s),
    marked("validation\ns"): lambda row: _median(row.validation_s),
    marked("test s"): lambda row: _median(row.test_s),
    marked("total s"): _total,
    marked("samples/s"): _rate,
    marked("speed-up,\nall phases"): lambda row: speedup_text(row.speedup_total) if row.speedup_total else "",
    marked("speed-up,\ntraining"): lambda row: speedup_text(row.speedup_train) if row.speedup_train else "",
    marked("efficiency"): _efficiency,
}
LEGEND = marked(
    "Times are medians over runs; [low, high] is the 95 % interval of a median, or, of fewer than 5 runs, the range "
    "seen. A batch is global, with each seat's part in brackets. Efficiency is speed-up over the number of devices "
    "or seats, as a multiple of the baseline's."
)
LINES = marked("lines")
FURTHER = {
    LINES: marked(
        "Lines are those of a training loop that its user writes, the network and the reading of data left out."
    ),
    HOST: HOST_LEGEND,
    EXPECTED: EXPECTED_LEGEND,
    LOST: marked("Score lost is what the baseline's score is better by; below 0, it is worse."),
    ENERGY: ENERGY_LEGEND,
    TIME_TO_SCORE: marked(
        "Time to score is training and validation up to the first validation with the score of train.until; runs "
        "that ended without it count as never."
    ),
}
"""What columns mean that not every report has, by the beginning of their titles."""
