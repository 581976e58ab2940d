"""The verb `escala compare`: what changed from one campaign to another, with confidence."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from escala.cli_show import form_of
from escala.terms.errors import EscalaError

if TYPE_CHECKING:
    from escala.analyse.pairing import Side

_SHARE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")


def compare(
    before: Annotated[Path, typer.Argument(metavar="DIR_A", help="The campaign that is compared with.")],
    after: Annotated[Path, typer.Argument(metavar="DIR_B", help="The campaign that is compared.")],
    asked_form: Annotated[
        str | None,
        typer.Option("--format", help="terminal, markdown, csv or json; left out: by the ending of FILE."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write to this file.")] = None,
    fail_above: Annotated[
        str | None,
        typer.Option("--fail-above", metavar="SHARE", help="Exit 6 where a row is surely slower by more, as 5%."),
    ] = None,
    same_within: Annotated[
        str, typer.Option("--same-within", metavar="SHARE", help="A change of time that is none.")
    ] = "2%",
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Compare other data, devices, formats, batches or budgets, too.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Which rows became faster or slower from campaign A to campaign B, and whether that is more than chance.

    Example:  escala compare runs/main runs/branch --fail-above 5% --out change.md
    """
    from escala.analyse.comparison import compared, refuse_slower
    from escala.report.comparison import COMPARISON_WRITERS
    from escala.store.files import write_atomic

    form = "json" if as_json else form_of(asked_form, out)
    if form not in COMPARISON_WRITERS:
        formats = ", ".join(COMPARISON_WRITERS)
        raise EscalaError("CFG-VALUE", "--format", f"there is no format {form!r}", expected=f"one of {formats}")
    margin = _share("--same-within", same_within)
    limit = None if fail_above is None else _share("--fail-above", fail_above)
    found = compared(_sides(before), _sides(after), _names(before, after), same_within=margin, anyway=anyway)
    text = COMPARISON_WRITERS[form](found)
    if out is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_atomic(out, text.encode())
    if limit is not None:
        refuse_slower(found, limit)


def _share(option: str, text: str) -> float:
    match = _SHARE.fullmatch(text)
    # A bare 5 would be five times the time, which nobody means.
    if match is None or (not match[2] and float(match[1]) >= 1):
        raise EscalaError("CFG-VALUE", option, f"{text!r} is no share", expected="such as 5% or 0.05")
    return float(match[1]) / (100 if match[2] else 1)


def _sides(folder: Path) -> tuple[Side, ...]:
    from escala.analyse.pairing import sides_of
    from escala.plan.read import label_of, variations
    from escala.store import journal
    from escala.store.campaign import open_campaign, read_asked, read_records

    campaign = open_campaign(folder)
    experiment = read_asked(campaign).experiment
    records = tuple(journal.newest(read_records(campaign, curves=False).records).values())
    points = [variation.point for variation in variations(experiment)]
    return sides_of(records, [label_of(spec) for spec in experiment.strategy], points, experiment.measure.tolerance)


def _names(before: Path, after: Path) -> tuple[str, str]:
    from escala.analyse.plain import LONGEST_REASON, plain

    return plain(before, LONGEST_REASON), plain(after, LONGEST_REASON)
