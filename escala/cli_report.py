"""The verb `escala report`: a campaign's table, page, charts and files for other programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from escala.cli_show import form_of, in_colour, note, show
from escala.terms.errors import EscalaError

if TYPE_CHECKING:
    from escala.analyse.annex import Annex
    from escala.analyse.attribute import Attribution
    from escala.analyse.row import Summary
    from escala.report.charts.matter import Matter
    from escala.store.campaign import Asked
    from escala.terms.experiment import Experiment
    from escala.terms.record import Record


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A campaign's folder.")],
    asked_form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="terminal, markdown, csv, json, html, mlperf or parquet; left out: by the ending of FILE.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write to this file.")] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Put damaged records aside first.")] = False,
    epochs: Annotated[bool, typer.Option("--epochs", help="Also every row epoch by epoch.")] = False,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", metavar="DIR", help="Also charts as SVG, PNG and PDF, into this folder."),
    ] = None,
    tensorboard: Annotated[
        Path | None,
        typer.Option("--tensorboard", metavar="DIR", help="Also TensorBoard's event files, into this folder."),
    ] = None,
    lang: Annotated[
        str, typer.Option("--lang", metavar="CODE", help="Language of what people read: en or es.")
    ] = "en",
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """The table of a campaign and what it means.

    Example:  escala report runs/quickstart --out table.md
    """
    from escala.analyse.language import speaking, words_of
    from escala.report import FOR_PEOPLE
    from escala.store import journal
    from escala.store.campaign import open_campaign, read_asked, read_records
    from escala.store.files import write_atomic

    words, form = words_of(lang), "json" if as_json else form_of(asked_form, out)
    campaign = open_campaign(folder)
    asked = read_asked(campaign)
    bundle = None
    if form == "html":
        from escala.report.html.renderer import renderer_ahead

        bundle = renderer_ahead()
    if repair and (moved := journal.repair(campaign.records)):
        note(f"{moved} damaged records were put aside")
    found = read_records(campaign, curves=tensorboard is not None)
    if found.torn:
        note("the last record is cut and left out; escala run goes on from there")
    records = tuple(journal.newest(found.records).values())
    if bundle is not None or figures is not None:
        _tell_missing(campaign.folder, records)

    def written(to_file: bool) -> bytes:
        # What programs read is the same in every language.
        with speaking(words if form in FOR_PEOPLE else words_of("en")):
            if bundle is not None:
                return _page(campaign.folder, records, asked, bundle, epochs=epochs).encode()
            return report_text(records, asked.experiment, form, quick=asked.quick, epochs=epochs, to_file=to_file)

    if out is None:
        _refuse_binary(form)
        show(written(to_file=False).decode())
    else:
        write_atomic(out, written(to_file=True))
    if figures is not None:
        with speaking(words):
            _write_figures(campaign.folder, records, asked, figures)
    if tensorboard is not None:
        _write_event_files(records, tensorboard)


def _tell_missing(campaign: Path, records: Sequence[Record]) -> None:
    from escala.report.charts.traces import missing_traces

    if missing := missing_traces(campaign, records):
        note(f"{missing} power traces are not in {campaign}; power over time is drawn of those that are")


def _refuse_binary(form: str) -> None:
    from escala.report.exports import BINARY

    if form in BINARY:
        raise EscalaError("CFG-USAGE", "--format", f"{form} is no text for a screen", next_step="give --out FILE")


def report_text(
    records: Sequence[Record],
    experiment: Experiment,
    form: str,
    *,
    quick: bool,
    epochs: bool = False,
    to_file: bool = False,
) -> bytes:
    """The report in one of its formats but html. Raises `CFG-VALUE` for a format that there is not."""
    from escala.analyse.verdict import judge
    from escala.report import WRITERS
    from escala.report.exports import EXPORTS

    if form not in WRITERS and form not in EXPORTS:
        formats = ", ".join((*WRITERS, "html", *EXPORTS))
        raise EscalaError("CFG-VALUE", "--format", f"there is no format {form!r}", expected=f"one of {formats}")
    found = _rows(records, experiment)
    annex = _annex(records, experiment, found, quick=quick, epochs=epochs)
    if form in EXPORTS:
        return EXPORTS[form](records, found, annex)
    if form == "terminal" and not to_file and in_colour():
        from escala.report import terminal

        return terminal.write(found, judge(found), annex, colour=True).encode()
    return WRITERS[form](found, judge(found), annex).encode()


def _annex(
    records: Sequence[Record], experiment: Experiment, rows: Sequence[Summary], *, quick: bool, epochs: bool
) -> Annex:
    from escala.analyse.annex import Annex
    from escala.analyse.epochs import by_epoch
    from escala.analyse.published import published

    beside = published(experiment.published, experiment.source, rows, quick=quick)
    return Annex(beside, by_epoch(records, rows) if epochs else (), _apart(records, experiment, rows))


def _apart(records: Sequence[Record], experiment: Experiment, rows: Sequence[Summary]) -> tuple[Attribution, ...]:
    """Speed-ups taken apart, where the experiment names a target."""
    from escala.analyse.attribute import attributions

    target = experiment.measure.attribute
    return attributions(records, rows, target) if target is not None else ()


def _rows(records: Sequence[Record], experiment: Experiment) -> tuple[Summary, ...]:
    from escala.analyse.summary import summarise
    from escala.plan.read import label_of, variations

    points = [variation.point for variation in variations(experiment)]
    baseline = experiment.measure.baseline or label_of(experiment.strategy[0])
    measure = experiment.measure
    labels = [label_of(spec) for spec in experiment.strategy]
    return summarise(records, baseline, points, measure.tolerance, measure.grid_g_per_kwh, labels)


def _page(campaign: Path, records: Sequence[Record], asked: Asked, bundle: Callable[[], str], *, epochs: bool) -> str:
    from msgspec.structs import replace

    from escala.analyse.annex import Annex
    from escala.analyse.verdict import judge
    from escala.report.html import page
    from escala.report.html.about import seen

    matter = _matter(campaign, records, asked)
    about = replace(
        seen(records),
        title=asked.experiment.title,
        about=asked.experiment.about,
        quick=asked.quick,
        source=asked.source,
        overrides=asked.overrides,
        command=asked.command,
    )
    annex = Annex(matter.published, tuple(matter.epochs) if epochs else (), tuple(matter.attributions))
    return page.write(matter.rows, judge(matter.rows), annex, matter, about, bundle)


def _matter(campaign: Path, records: Sequence[Record], asked: Asked) -> Matter:
    from escala.analyse.epochs import by_epoch
    from escala.analyse.published import published
    from escala.report.charts.matter import Matter
    from escala.report.charts.traces import traces_of

    rows = _rows(records, asked.experiment)
    beside = published(asked.experiment.published, asked.experiment.source, rows, quick=asked.quick)
    apart = _apart(records, asked.experiment, rows)
    return Matter(rows, by_epoch(records, rows), traces_of(campaign, records), beside, apart)


def _write_figures(campaign: Path, records: Sequence[Record], asked: Asked, folder: Path) -> None:
    from escala.report.figures import figures
    from escala.store.files import disk_errors, names_in, write_atomic

    with disk_errors(folder):
        names_in(folder)
    for name, content in figures(_matter(campaign, records, asked)):
        write_atomic(folder / name, content)
        note(f"wrote {folder / name}")


def _write_event_files(records: Sequence[Record], folder: Path) -> None:
    from escala.report.event_files import event_files
    from escala.store.files import disk_errors, names_in, write_atomic

    written = 0
    for name, content in event_files(records):
        path = folder / name
        with disk_errors(path.parent):
            names_in(path.parent)
        write_atomic(path, content)
        written += 1
    note(f"wrote {written} event files under {folder}")
