"""The command line: reads words, calls the layers below, prints and writes what they return."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from escala import __version__, cli_data, cli_train
from escala.terms.errors import EscalaError, Exit

if TYPE_CHECKING:
    from escala.analyse.row import Summary
    from escala.terms.experiment import Experiment
    from escala.terms.record import Record

app = typer.Typer(
    name="escala",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Measure how a neural network should be trained on this machine: the same work under every "
    "parallelisation strategy, with one clock, compared fairly.\n\n"
    "Start with:  escala run quickstart --out runs/quickstart",
)
app.add_typer(cli_data.app, name="data")

_Experiment = Annotated[str, typer.Argument(metavar="EXPERIMENT", help="A TOML file or the name of a shipped study.")]
_Set = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key, for example train.batch=256.")
]
_Quick = Annotated[bool, typer.Option("--quick", help="The study's quick form: less work, every path of the code.")]
_Case = Annotated[
    list[str], typer.Option("--case", metavar="NAME", help="Only this case, by its name or a part of it; repeatable.")
]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@app.callback(invoke_without_command=True)
def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    del debug  # looked at by `main`, which is outside typer
    if version:
        typer.echo(f"escala {__version__}")
        raise typer.Exit


@app.command()
def probe(as_json: _Json = False) -> None:
    """What this machine has, which strategies fit and which meters read its energy, and why the others do not.

    Example:  escala probe
    """
    from escala.plan.fits import fits
    from escala.plan.power import meters_of
    from escala.plan.preflight import Question, preflight

    host = preflight(Question(), _note).host
    fitting, meters = fits(host), meters_of(host)
    if as_json:
        strategies = [{"name": name, "unfit": reason} for name, reason in fitting]
        _print_json({"host": host, "strategies": strategies, "meters": meters})
        return
    from escala.report.probe_text import host_text

    _print(host_text(host, fitting, meters))


@app.command()
def studies(as_json: _Json = False) -> None:
    """The experiments that ship with escala.

    Example:  escala studies
    """
    from escala.plan.studies import summaries

    found = summaries()
    if as_json:
        _print_json([{"name": name, "title": title, "about": about} for name, title, about in found])
        return
    from escala.report.studies_text import studies_text

    _print(studies_text(found, colour=_in_colour()))


@app.command()
def plan(
    experiment: _Experiment,
    overrides: _Set = [],  # noqa: B006
    quick: _Quick = False,
    cases: _Case = [],  # noqa: B006
    as_json: _Json = False,
) -> None:
    """The trials of an experiment: who sits where and sees which rows. Nothing runs.

    Example:  escala plan quickstart --set train.batch=128
    """
    from escala.plan.cases import only
    from escala.plan.expand import as_written, trials, workloads_of
    from escala.plan.memory import estimates
    from escala.plan.preflight import Question, preflight
    from escala.plan.read import read
    from escala.plan.traces import keys_of

    loaded = only(read(experiment, overrides, quick=quick), cases)
    question = Question(workloads_of(loaded.experiment), traces=keys_of(loaded.experiment))
    before = preflight(question, _note)
    found = trials(loaded.experiment, before)
    memory = {trial.id: estimates(trial, before.of_trial(trial)) for trial in found}
    if as_json:
        from escala.report.plan_text import plan_plain

        _print_json(plan_plain(found, memory))
        return
    from escala.report.plan_text import plan_text

    _print(plan_text(as_written(found, loaded.experiment), memory))


@app.command()
def run(
    experiment: _Experiment,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The campaign's folder, new or to go on with.")],
    overrides: _Set = [],  # noqa: B006
    quick: _Quick = False,
    cases: _Case = [],  # noqa: B006
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress; the table at the end only.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Run again the trials that failed.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Put damaged records aside and go on.")] = False,
    as_json: _Json = False,
) -> None:
    """Run a campaign, or go on with one that was interrupted. Ends with the table.

    Example:  escala run quickstart --out runs/quickstart
    """
    from escala.plan.cases import only
    from escala.plan.read import read
    from escala.report import live
    from escala.run.meeting import place_of

    loaded = only(read(experiment, overrides, quick=quick), cases)
    command = ["escala", *sys.argv[1:]]
    place = place_of(os.environ)
    with live.watching(_note, quiet=quiet or as_json or (place is not None and place.rank > 0)) as watch:
        if place is None:
            from escala.run.campaign import run_campaign

            records = run_campaign(loaded, out, command=command, watch=watch, repair=repair, retry=retry)
        else:
            from escala.run.joined import run_joined

            records = run_joined(place, loaded, out, command=command, watch=watch, repair=repair, retry=retry)
            if place.rank > 0:
                return
    _print(_report(records, loaded.experiment, "json" if as_json else "terminal", quick=loaded.quick))
    if any(record.outcome in ("failed", "diverged", "out of memory") for record in records):
        raise typer.Exit(Exit.TRIALS_FAILED)


app.command()(cli_train.train)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A campaign's folder.")],
    form: Annotated[str, typer.Option("--format", help="terminal, markdown, csv or json.")] = "terminal",
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write to this file.")] = None,
    repair: Annotated[bool, typer.Option("--repair", help="Put damaged records aside first.")] = False,
    epochs: Annotated[bool, typer.Option("--epochs", help="Also every row epoch by epoch.")] = False,
    figures: Annotated[
        Path | None,
        typer.Option("--figures", metavar="DIR", help="Also charts as SVG, PNG and PDF, into this folder."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """The table of a campaign and what it means.

    Example:  escala report runs/quickstart --format markdown --out table.md
    """
    from escala.store import journal
    from escala.store.campaign import open_campaign, read_asked, read_records
    from escala.store.files import write_atomic

    campaign = open_campaign(folder)
    asked = read_asked(campaign)
    if repair and (moved := journal.repair(campaign.records)):
        _note(f"{moved} damaged records were put aside")
    found = read_records(campaign, curves=False)
    if found.torn:
        _note("the last record is cut and left out; escala run goes on from there")
    records = tuple(journal.newest(found.records).values())
    text = _report(
        records,
        asked.experiment,
        "json" if as_json else form,
        quick=asked.quick,
        epochs=epochs,
        to_file=out is not None,
    )
    if out is None:
        _print(text)
    else:
        write_atomic(out, text.encode())
    if figures is not None:
        _write_figures(campaign.folder, records, asked.experiment, figures)


def _report(
    records: Sequence[Record],
    experiment: Experiment,
    form: str,
    *,
    quick: bool,
    epochs: bool = False,
    to_file: bool = False,
) -> str:
    from escala.analyse.annex import Annex
    from escala.analyse.epochs import by_epoch
    from escala.analyse.published import published
    from escala.analyse.verdict import judge
    from escala.report import WRITERS

    if form not in WRITERS:
        raise EscalaError(
            "CFG-VALUE", "--format", f"there is no format {form!r}", expected=f"one of {', '.join(WRITERS)}"
        )
    found = _rows(records, experiment)
    beside = published(experiment.published, experiment.source, found, quick=quick)
    annex = Annex(beside, by_epoch(records, found) if epochs else ())
    if form == "terminal" and not to_file and _in_colour():
        from escala.report import terminal

        return terminal.write(found, judge(found), annex, colour=True)
    return WRITERS[form](found, judge(found), annex)


def _rows(records: Sequence[Record], experiment: Experiment) -> tuple[Summary, ...]:
    from escala.analyse.summary import summarise
    from escala.plan.read import label_of, variations

    points = [variation.point for variation in variations(experiment)]
    baseline = experiment.measure.baseline or label_of(experiment.strategy[0])
    measure = experiment.measure
    labels = [label_of(spec) for spec in experiment.strategy]
    return summarise(records, baseline, points, measure.tolerance, measure.grid_g_per_kwh, labels)


def _write_figures(campaign: Path, records: Sequence[Record], experiment: Experiment, folder: Path) -> None:
    from escala.analyse.epochs import by_epoch
    from escala.report.charts.matter import Matter
    from escala.report.charts.traces import traces_of
    from escala.report.figures import figures
    from escala.store.files import disk_errors, names_in, write_atomic

    with disk_errors(folder):
        names_in(folder)
    rows = _rows(records, experiment)
    for name, content in figures(Matter(rows, by_epoch(records, rows), traces_of(campaign, records))):
        write_atomic(folder / name, content)
        _note(f"wrote {folder / name}")


def _in_colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def _print(text: str) -> None:
    sys.stdout.write(text if text.endswith("\n") else text + "\n")
    sys.stdout.flush()


def _print_json(value: object) -> None:
    import msgspec

    _print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _note(text: str) -> None:
    sys.stderr.write(f"escala: {text}\n")
