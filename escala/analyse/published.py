"""Published figures beside the ones measured here, and what differs between the two."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from escala.analyse.bootstrap import scaled
from escala.analyse.compare import against, point_text
from escala.analyse.energy import only_why
from escala.analyse.group import point_key
from escala.analyse.language import marked, say
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain
from escala.analyse.row import Interval, Summary
from escala.analyse.wording import counted, likeness_text, listed, outcomes_text
from escala.terms.published import UNITS, Figure, PublishedSpec, SourceSpec, Unit

_LEFT_OUT = marked("the quick form leaves it out")
_NOT_RUN = marked("no run of it was recorded")
_OTHER_UNTIMED = marked("{row}, which it is against, has no times here")
_UNTIMED = marked("{row}, which it is against, or the row itself has no such times here")
_QUICK = marked("the quick form: it shows that every part works, not what the study finds")
_QUICK_SAMPLES = marked(
    "the quick form, {samples} training samples a run: it shows that every part works, not what the study finds"
)


class Beside(Struct, frozen=True):
    """One published figure. `measured` is in its unit; None: there is none, for `reason`."""

    row: str
    place: str
    """The case and swept values of the measured row, or of the published one where none was measured."""
    figure: Figure
    against: str | None
    value: float | str
    unit: Unit
    measured: Interval | None
    reason: str | None = None
    note: str = ""


class Published(Struct, frozen=True):
    """Every published figure of a study, in its order; `differs` says what was not alike, a sentence each."""

    work: str
    figures: tuple[Beside, ...]
    differs: tuple[str, ...]


def figure_text(one: Beside) -> str:
    """`speed-up against single`, safe to show."""
    figure = say(one.figure)
    if one.against is None:
        return figure
    return say("{figure} against {row}", figure=figure, row=plain(one.against, LONGEST_NAME))


def published(
    entries: Sequence[PublishedSpec], source: SourceSpec | None, summaries: Sequence[Summary], *, quick: bool
) -> Published | None:
    """Published figures with their rows of `summaries`; None where there are none to show."""
    if not entries or source is None:
        return None
    figures = tuple(found for entry in entries for found in _found(entry, summaries, quick))
    return Published(source.work, figures, tuple(_differences(source, summaries, quick)))


def _found(entry: PublishedSpec, summaries: Sequence[Summary], quick: bool) -> list[Beside]:
    wanted = ({"case": entry.case} if entry.case is not None else {}) | entry.point
    rows = [row for row in summaries if row.label == entry.row and wanted.items() <= _simple(row).items()]
    if not rows:
        return [_beside(entry, point_text(wanted), None, say(_LEFT_OUT if quick else _NOT_RUN))]
    return [_beside(entry, point_text(row.point), *_measured(entry, row, summaries)) for row in rows]


def _simple(row: Summary) -> dict[str, object]:
    """The point without what cannot be looked up, such as a swept list."""
    return {key: value for key, value in row.point.items() if isinstance(value, str | int | float)}


def _beside(entry: PublishedSpec, place: str, measured: Interval | None, reason: str | None) -> Beside:
    return Beside(
        entry.row, place, entry.figure, entry.against, entry.value, entry.unit, measured, reason, entry.note
    )


def _measured(entry: PublishedSpec, row: Summary, summaries: Sequence[Summary]) -> tuple[Interval | None, str | None]:
    if not row.outcomes.get("done"):
        return None, outcomes_text(row)
    label = entry.against if entry.against is not None else row.baseline
    if entry.against is not None:
        other = next((one for one in summaries if one.label == entry.against and _one_block(one, row)), None)
        if other is None or not other.runs:
            return None, say(_OTHER_UNTIMED, row=plain(label, LONGEST_NAME))
        row = against(row, other)
    if (found := _READ[entry.figure](row)) is not None:
        return scaled(found, 1 / UNITS[entry.figure][entry.unit]), None
    if entry.figure.startswith(("speed-up", "efficiency")):
        return None, say(_UNTIMED, row=plain(label, LONGEST_NAME))
    if entry.figure.startswith(("energy", "EDP")):
        return None, _why_no_energy(row)
    return None, say("the runs have no such figure")


def _why_no_energy(row: Summary) -> str:
    if row.energy_reason is not None:
        return plain(only_why(row.energy_reason), LONGEST_REASON)
    if "other meter" in row.doubts:
        return f"{say('other meter')}: {row.doubts['other meter']}"
    return say("a board that idled, or the row that it is against, was not read")


def _one_block(one: Summary, other: Summary) -> bool:
    return (one.likeness, point_key(one.point), one.digest) == (other.likeness, point_key(other.point), other.digest)


def _differences(source: SourceSpec, summaries: Sequence[Summary], quick: bool) -> list[str]:
    told = []
    if source.machine:
        hosts = dict.fromkeys(likeness_text(row.likeness) for row in summaries)
        then, now = plain(source.machine, LONGEST_REASON), listed([*hosts] or [say("none")])
        told.append(say("machine then {then}, now {now}", then=then, now=now))
    if source.data:
        names = dict.fromkeys(_data(row) for row in summaries if row.origin is not None)
        then, now = plain(source.data, LONGEST_REASON), ", ".join(names) or say("none")
        told.append(say("data then {then}, now {now}", then=then, now=now))
    epochs = sorted({row.epochs for row in summaries if row.epochs is not None})
    by_steps = any(row.epochs is None for row in summaries)
    if source.epochs is not None and (by_steps or epochs != [source.epochs]):
        counts = [f"{count:,}" for count in epochs] + ([say("a number of steps")] if by_steps else [])
        then, now = counted(source.epochs, "epoch"), listed(counts or [say("none")])
        told.append(say("{then} then, {now} now", then=then, now=now))
    if quick:
        samples = sorted({row.samples for row in summaries if row.samples is not None})
        told.append(say(_QUICK_SAMPLES, samples=_ends(samples)) if samples else say(_QUICK))
    return told


def _ends(counts: Sequence[int]) -> str:
    if len(counts) == 1:
        return f"{counts[0]:,}"
    return say("{low} to {high}", low=f"{counts[0]:,}", high=f"{counts[-1]:,}")


def _data(row: Summary) -> str:
    return f"{plain(row.data, LONGEST_NAME)} ({say(row.origin or '')})"


_READ: dict[Figure, Callable[[Summary], Interval | None]] = {
    "speed-up": lambda row: row.speedup_total,
    "speed-up, training": lambda row: row.speedup_train,
    "efficiency": lambda row: row.efficiency_total,
    "efficiency, training": lambda row: row.efficiency_train,
    "score": lambda row: row.score,
    "train s/epoch": lambda row: row.epoch_s,
    "train s": lambda row: row.train_s,
    "validation s": lambda row: row.validation_s,
    "test s": lambda row: row.test_s,
    "total s": lambda row: row.total_s,
    "samples/s": lambda row: row.samples_per_second,
    "energy": lambda row: row.energy_j,
    "energy with idle": lambda row: row.energy_host_j,
    "EDP": lambda row: row.edp_ratio,
    "EDP with idle": lambda row: row.edp_host_ratio,
}
