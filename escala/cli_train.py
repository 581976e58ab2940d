"""The verb `escala train`: one run to its end, with checkpoints, and the weights at the end."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from escala.cli_show import note
from escala.terms.errors import EscalaError, Exit


def train(
    experiment: Annotated[
        str, typer.Argument(metavar="EXPERIMENT", help="A TOML file or the name of a shipped study.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="The training's folder; else runs/train-EXPERIMENT.")
    ] = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", metavar="LABEL", help="Which one, where the experiment has several.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the newest sound checkpoint, if any.")] = False,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0, help="Time between checkpoints within an epoch.")
    ] = 600.0,
    overrides: Annotated[
        list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key, for example train.epochs=20.")
    ] = [],  # noqa: B006
    quick: Annotated[bool, typer.Option("--quick", help="The study's quick form.")] = False,
    cases: Annotated[
        list[str], typer.Option("--case", metavar="NAME", help="Which case, where the experiment has several.")
    ] = [],  # noqa: B006
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress; the end only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Train one strategy to the end, with checkpoints. Stopped by SIGTERM, it goes on with --resume.

    Example:  escala train quickstart --strategy single --out runs/mine
    """
    from escala.plan.cases import only
    from escala.plan.read import read
    from escala.report import live
    from escala.run.train import run_training

    _refuse_launchers()
    loaded = only(read(experiment, overrides, quick=quick), cases)
    folder = out or Path("runs", f"train-{Path(experiment).stem}")
    _refuse_files(folder)
    command = ["escala", *sys.argv[1:]]
    with live.watching(note, quiet=quiet or as_json) as watch:
        trained = run_training(
            loaded, folder, command=command, watch=watch, label=strategy, resume=resume, every_s=every
        )
    from escala.report.train_text import json_text, train_text

    write = json_text if as_json else train_text
    sys.stdout.write(write(trained.record, trained.weights))
    sys.stdout.flush()
    if trained.weights is None:
        raise typer.Exit(Exit.TRIALS_FAILED)


def _refuse_launchers() -> None:
    from escala.run.meeting import place_of

    if place_of(os.environ) is not None:
        raise EscalaError(
            "ENV-LAUNCHER",
            "environment",
            "RANK and WORLD_SIZE are set, but escala train starts its processes itself, on one machine",
            next_step="unset both",
        )


def _refuse_files(folder: Path) -> None:
    if folder.is_file():
        from escala.store.checkpoint import open_checkpoint

        # Somebody else's checkpoint, most likely: never looked into, and said so.
        open_checkpoint(folder)
