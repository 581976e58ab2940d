"""What stands below the tables of a report: where a speed-up came from, published figures, rows epoch by epoch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from escala.analyse.annex import Annex
from escala.analyse.compare import point_text
from escala.analyse.energy import NOT_MEASURED, not_measured
from escala.analyse.epochs import EpochRow
from escala.analyse.language import say
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain
from escala.analyse.published import Beside, Published, figure_text
from escala.analyse.row import Interval
from escala.analyse.wording import counted, interval_text, likeness_text, number, score_name
from escala.report.attribution_sections import attribution_sections
from escala.report.column import Column
from escala.report.section import Section

NAMED = 3
"""Rows that a remark names in full, before it only counts."""


def sections(annex: Annex) -> tuple[Section, ...]:
    """The sections that there is something for."""
    found = [_published(annex.published)] if annex.published is not None else []
    return (*attribution_sections(annex.attributions), *found, *_epochs(annex.epochs))


def _published(published: Published) -> Section:
    figures = published.figures
    columns = (
        Column(say("row"), tuple(plain(one.row, LONGEST_NAME) for one in figures), text=True),
        Column(say("of"), tuple(one.place for one in figures), text=True),
        Column(say("figure"), tuple(map(figure_text, figures)), text=True),
        Column(say("published"), tuple(_value(one) for one in figures)),
        Column(say("measured"), tuple(_measured(one) for one in figures)),
    )
    reasons = [(one, not_measured(one.reason or "")) for one in figures if one.measured is None]
    remarks = [(one, plain(one.note, LONGEST_REASON)) for one in figures if one.note]
    differs = "; ".join(published.differs) or say("nothing that the study names")
    return Section(
        say("Published beside measured"),
        tuple(column for column in columns if any(column.cells)),
        (*_merged(reasons), *_merged(remarks)),
        (
            say("Source: {work}", work=plain(published.work, LONGEST_REASON)),
            say("What differs: {differences}", differences=differs),
        ),
    )


def _name(one: Beside) -> str:
    return ", ".join(part for part in (plain(one.row, LONGEST_NAME), one.place) if part)


def _merged(remarks: Sequence[tuple[Beside, str]]) -> list[tuple[str, str]]:
    """Figures of which the same is to be said, on one line: by name where they are few."""
    alike: dict[str, list[Beside]] = {}
    for one, text in remarks:
        alike.setdefault(text, []).append(one)
    return [(_names(of_it), text) for text, of_it in alike.items()]


def _names(figures: Sequence[Beside]) -> str:
    names = list(dict.fromkeys(map(_name, figures)))
    if len(names) <= NAMED:
        return "; ".join(names)
    rows = dict.fromkeys(plain(one.row, LONGEST_NAME) for one in figures)
    return f"{', '.join(rows)} ({counted(len(figures), 'figure')})"


def _value(one: Beside) -> str:
    # Words bring their own unit.
    if isinstance(one.value, str):
        return plain(one.value, LONGEST_NAME)
    return f"{_plain_number(one.value)} {one.unit}".strip()


def _plain_number(value: float) -> str:
    return f"{value:.2e}" if abs(value) >= 1e6 else f"{value:,g}"


def _measured(one: Beside) -> str:
    return say(NOT_MEASURED) if one.measured is None else f"{interval_text(one.measured)} {one.unit}".strip()


def _epochs(rows: Sequence[EpochRow]) -> Iterator[Section]:
    hosts = list(dict.fromkeys(row.likeness for row in rows))
    places = list(dict.fromkeys((point_text(row.point), row.likeness) for row in rows))
    for point, likeness in places:
        here = [row for row in rows if (point_text(row.point), row.likeness) == (point, likeness)]
        names = list(dict.fromkeys(row.score_name for row in here if row.score_name))
        score = say("{score}\n(validation)", score=score_name(names[0] if len(names) == 1 else None))
        columns = (
            Column(say("strategy"), tuple(plain(row.label, LONGEST_NAME) for row in here), text=True),
            Column(say("epoch"), tuple(str(row.number) for row in here)),
            Column(say("runs"), tuple(str(row.runs) for row in here)),
            Column(say("train s"), tuple(_interval(row.train_s) for row in here)),
            Column(say("validation\ns"), tuple(_median(row.validation_s, 3) for row in here)),
            Column(say("loss"), tuple(_median(row.loss, 4) for row in here)),
            Column(score, tuple(_median(row.score, 4) for row in here)),
        )
        parts = [
            part
            for part in (point, say("on {machine}", machine=likeness_text(likeness)) if len(hosts) > 1 else "")
            if part
        ]
        yield Section(
            ": ".join([say("Epoch by epoch"), *parts]), tuple(column for column in columns if any(column.cells))
        )


def _interval(found: Interval | None) -> str:
    return interval_text(found) if found else ""


def _median(found: Interval | None, digits: int) -> str:
    return number(found.median, digits) if found else ""
