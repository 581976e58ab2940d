"""The command line: reads words, calls the layers below, prints and writes what they return."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from escala import __version__, cli_compare, cli_data, cli_report, cli_train
from escala.cli_report import report_text
from escala.cli_show import in_colour, note, show, show_json
from escala.terms.errors import Exit

if TYPE_CHECKING:
    from escala.plan.read import Loaded

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
_Attribute = Annotated[
    bool,
    typer.Option("--attribute", help="Run what lies between baseline and target: where the speed-up comes from."),
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

    host = preflight(Question(), note).host
    fitting, meters = fits(host), meters_of(host)
    if as_json:
        strategies = [{"name": name, "unfit": reason} for name, reason in fitting]
        show_json({"host": host, "strategies": strategies, "meters": meters})
        return
    from escala.report.probe_text import host_text

    show(host_text(host, fitting, meters))


@app.command()
def studies(as_json: _Json = False) -> None:
    """The experiments that ship with escala.

    Example:  escala studies
    """
    from escala.plan.studies import summaries

    found = summaries()
    if as_json:
        show_json([{"name": name, "title": title, "about": about} for name, title, about in found])
        return
    from escala.report.studies_text import studies_text

    show(studies_text(found, colour=in_colour()))


@app.command()
def plan(
    experiment: _Experiment,
    overrides: _Set = [],  # noqa: B006
    quick: _Quick = False,
    cases: _Case = [],  # noqa: B006
    attribute: _Attribute = False,
    as_json: _Json = False,
) -> None:
    """The trials of an experiment: who sits where and sees which rows. Nothing runs.

    Example:  escala plan quickstart --set train.batch=128
    """
    from escala.plan.expand import as_written, question_of, trials
    from escala.plan.memory import estimates, why_unknown
    from escala.plan.preflight import preflight

    loaded = _loaded(experiment, overrides, quick, cases, attribute)
    before = preflight(question_of(loaded.experiment), note)
    found = trials(loaded.experiment, before)
    facts = {trial.id: before.of_trial(trial) for trial in found}
    memory = {trial.id: estimates(trial, facts[trial.id], before.host) for trial in found}
    if as_json:
        from escala.report.plan_text import plan_plain

        show_json(plan_plain(found, memory))
        return
    from escala.report.plan_text import plan_text

    unknown = {trial.id: why_unknown(trial, facts[trial.id]) for trial in found}
    show(plan_text(as_written(found, loaded.experiment), memory, unknown))


@app.command()
def run(
    experiment: _Experiment,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The campaign's folder, new or to go on with.")],
    overrides: _Set = [],  # noqa: B006
    quick: _Quick = False,
    cases: _Case = [],  # noqa: B006
    attribute: _Attribute = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress; the table at the end only.")] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Run again the trials that failed.")] = False,
    repair: Annotated[bool, typer.Option("--repair", help="Put damaged records aside and go on.")] = False,
    as_json: _Json = False,
) -> None:
    """Run a campaign, or go on with one that was interrupted. Ends with the table.

    Example:  escala run quickstart --out runs/quickstart
    """
    from escala.report import live
    from escala.run.meeting import place_of

    loaded = _loaded(experiment, overrides, quick, cases, attribute)
    command = ["escala", *sys.argv[1:]]
    place = place_of(os.environ)
    with live.watching(note, quiet=quiet or as_json or (place is not None and place.rank > 0)) as watch:
        if place is None:
            from escala.run.campaign import run_campaign

            records = run_campaign(loaded, out, command=command, watch=watch, repair=repair, retry=retry)
        else:
            from escala.run.joined import run_joined

            records = run_joined(place, loaded, out, command=command, watch=watch, repair=repair, retry=retry)
            if place.rank > 0:
                return
    show(report_text(records, loaded.experiment, "json" if as_json else "terminal", quick=loaded.quick).decode())
    if any(record.outcome in ("failed", "diverged", "out of memory") for record in records):
        raise typer.Exit(Exit.TRIALS_FAILED)


app.command()(cli_train.train)
app.command()(cli_compare.compare)
app.command()(cli_report.report)


def _loaded(experiment: str, overrides: Sequence[str], quick: bool, cases: Sequence[str], attribute: bool) -> Loaded:
    from escala.plan.attribute import attributed
    from escala.plan.cases import only
    from escala.plan.read import read

    loaded = only(read(experiment, overrides, quick=quick), cases)
    return attributed(loaded) if attribute else loaded
