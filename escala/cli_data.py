"""The verb `escala data`: which sets there are, what one holds, preparing images, fetching a published set."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from escala.cli_show import note, show, show_json
from escala.terms.errors import EscalaError, Exit

if TYPE_CHECKING:
    from escala.report.data_live import Follow

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, check, prepare and fetch data sets.")

_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


@app.command("list")
def list_sets(as_json: _Json = False) -> None:
    """Every named set: what it is, which workloads are made for it, and where it lies on this machine.

    Example:  escala data list
    """
    from escala.data.catalogue import listed

    sets = listed(os.environ)
    if as_json:
        show_json(sets)
        return
    from escala.report.data_text import sets_text

    show(sets_text(sets))


@app.command()
def check(
    name: Annotated[
        str, typer.Argument(metavar="NAME_OR_PATH", help="A named set, a file, a folder or hub:OWNER/NAME.")
    ],
    strict: Annotated[
        bool, typer.Option("--strict", help="Decode images fully; decoders' warnings are faults.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Read a set from beginning to end: what it holds, what is odd, everything that is wrong. Exits with 3 if so.

    Example:  escala data check fashion-mnist
    """
    from escala.data.check import check as check_set

    with _following() as follow:
        found = check_set(name, os.environ, follow, strict=strict)
    if as_json:
        show_json({"sound": found.sound, "checked": found})
    else:
        from escala.report.data_text import check_text

        show(check_text(found))
    if not found.sound:
        raise typer.Exit(Exit.DATA)


@app.command()
def prepare(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="One folder of images for each class.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file to write.")],
    size: Annotated[str, typer.Option("--size", metavar="WxH", help="Pixels, for example 197x148.")],
    grey: Annotated[bool, typer.Option("--grey", help="One channel instead of three.")] = False,
    dtype: Annotated[str, typer.Option("--dtype", help="uint8, float16 or float32; floats lie in 0..1.")] = "uint8",
    shares: Annotated[str, typer.Option("--shares", metavar="A/B/C", help="Train, validation, test.")] = "85/2/13",
    seed: Annotated[int, typer.Option("--seed", help="Decides the order of rows and the split.")] = 0,
    on_bad: Annotated[str, typer.Option("--on-bad", help="fail or skip: what to do about damaged files.")] = "fail",
    allow_empty: Annotated[bool, typer.Option("--allow-empty", help="Take classes without images.")] = False,
    workers: Annotated[
        int | None, typer.Option("--workers", metavar="N", help="Processes; all cores if left out.")
    ] = None,
) -> None:
    """Decode, resize and split a folder of images once, into a file that every process maps into its memory.

    Example:  escala data prepare fish --size 197x148 --grey --dtype float16 --out fish.escala
    """
    pixels, parts = _size(size), _shares(shares)
    from escala.data.image_prepare import prepare_images

    with _following() as follow:
        prepare_images(
            folder,
            out,
            size=pixels,
            grey=grey,
            dtype=dtype,
            shares=parts,
            seed=seed,
            on_bad=on_bad,
            allow_empty=allow_empty,
            workers=workers,
            progress=lambda done, total: follow("images", done, total),
        )
    show(f"{out} is written; use it with --set workload.data={out}")


@app.command()
def get(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A published set; escala data list shows them.")],
    to: Annotated[Path | None, typer.Option("--to", metavar="DIR", help="Where to; else $ESCALA_DATA/NAME.")] = None,
    given: Annotated[
        list[Path], typer.Option("--from", metavar="FILE", help="A file already fetched, or a folder of them.")
    ] = [],  # noqa: B006
    as_json: _Json = False,
) -> None:
    """Fetch a published set over https, compare it with its checksum, unpack it and put it in place.

    Example:  escala data get cifar10 --to data/cifar10
    """
    from escala.data.get import get as get_set

    with _following() as follow:
        got = get_set(name, os.environ, follow, to=to, given=given)
    if as_json:
        show_json(got)
        return
    from escala.report.data_text import got_text

    show(got_text(got))


@contextmanager
def _following() -> Iterator[Follow]:
    """A bar on a terminal, a line now and then elsewhere; on the error stream, so that tables can be piped."""
    from rich.console import Console

    from escala.report import data_live

    console = Console(stderr=True)
    if console.is_terminal:
        with data_live.bars(console) as follow:
            yield follow
    else:
        yield data_live.lines(note)


def _size(text: str) -> tuple[int, int]:
    """Width and height."""
    found = re.fullmatch(r"([1-9]\d{0,4})x([1-9]\d{0,4})", text, re.ASCII)
    if found is None:
        raise EscalaError("CFG-VALUE", "--size", f"{text!r} is no size", expected="width x height, such as 197x148")
    return int(found[1]), int(found[2])


def _shares(text: str) -> tuple[float, float, float]:
    """Shares of train, validation and test, which sum to 1."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)/(\d+(?:\.\d+)?)", text, re.ASCII)
    parts = tuple(float(part) for part in found.groups()) if found else ()
    if len(parts) != 3 or not parts[0] or abs(sum(parts) - 100) > 1e-6:
        raise EscalaError("CFG-VALUE", "--shares", f"{text!r} are no shares", expected="percent, such as 85/2/13")
    return parts[0] / 100, parts[1] / 100, parts[2] / 100
