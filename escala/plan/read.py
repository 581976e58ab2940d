"""TOML -> Experiment: read, overridden from the command line, and checked before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from escala.plan.explain import faults, schema
from escala.plan.keys import Misfit, label_of, other_budget, swept
from escala.plan.locate import Path, Places, scan
from escala.plan.overrides import Override, apply
from escala.plan.rules import broken
from escala.plan.source import tables_of, text_of
from escala.plan.vary import Variation, flattened, resolved, sweep_targets, variations
from escala.plan.words import dotted, printable
from escala.terms.errors import EscalaError
from escala.terms.experiment import Experiment

__all__ = ["Loaded", "Variation", "label_of", "parse", "read", "resolved", "variations"]


class Loaded(Struct, frozen=True):
    """An experiment that passed every check, and what it was read from.

    `text` is the source as it stands in the file, `where` the file's path or `study NAME`.
    """

    experiment: Experiment
    text: str
    where: str
    overrides: tuple[str, ...] = ()


def read(source: str, overrides: Sequence[str] = ()) -> Loaded:
    """The experiment at a TOML path, or the study of that name, with `--set` overrides put in.

    Raises EscalaError of the family CFG for whatever is wrong; nothing has been started or built by then.
    """
    text, where = text_of(source)
    return parse(text, where, overrides)


def parse(text: str, where: str, overrides: Sequence[str] = ()) -> Loaded:
    """The experiment in `text`; `where` names the text on error lines. Raises as `read` does."""
    return Loaded(_checked(text, where, overrides), text, where, tuple(overrides))


def _checked(text: str, where: str, overrides: Sequence[str]) -> Experiment:
    places = scan(text)
    tree = tables_of(text, where, places)
    place = _finder(where, places, ())
    try:
        if isinstance(tree.get("sweep"), dict):
            tree["sweep"] = flattened(tree["sweep"])
        applied = apply(overrides, tree)
        place = _finder(where, places, applied)
        experiment = _decoded(tree, place)
        targets = sweep_targets(experiment)
        _check_overrides_count(targets, applied, place)
        for fault in broken(experiment, targets):
            raise fault.error(place(fault.path, fault.rival))
    except Misfit as misfit:
        raise misfit.fault.error(place(misfit.fault.path)) from None
    return experiment


def _decoded(tree: dict[str, Any], place: Callable[..., str]) -> Experiment:
    for fault in faults(tree, schema()):
        raise fault.error(place(fault.path))
    try:
        return msgspec.convert(tree, Experiment)
    except msgspec.ValidationError as error:
        raise EscalaError("CFG-TYPE", place(()), printable(str(error))) from None


def _check_overrides_count(
    targets: Mapping[str, Path], applied: Sequence[Override], place: Callable[..., str]
) -> None:
    """An override of what is swept would change nothing, and nobody would notice."""
    for key, target in targets.items():
        for override in applied:
            if target in (override.path[: len(target)], other_budget(override.path)):
                what = f"{dotted(target)} is swept by {place(('sweep', key))}, so this would change nothing"
                step = f"set sweep.{key} to a list of one value"
                raise EscalaError("CFG-SET", override.where, what, next_step=step)


def _finder(where: str, places: Places, applied: Sequence[Override]) -> Callable[..., str]:
    """A function that says where a path was given: by which override, or on which line of the file."""

    def place(path: Path, rival: Path = ()) -> str:
        for override in reversed(applied):
            inside = any(_is_inside(override.path, entry) for entry in (path, rival))
            if inside or path[: len(override.path)] == override.path:
                return override.where
        line = places.line(_as_written(path, places))
        return where if line is None else f"{where}:{line}"

    return place


def _is_inside(path: Path, entry: Path) -> bool:
    """Whether `path` is part of the list entry `entry`, such as one strategy."""
    return len(entry) == 2 and isinstance(entry[1], int) and path[:2] == entry


def _as_written(path: Path, places: Places) -> Path:
    """The path that stands in the file for a swept key, which may be quoted there or a table of its own."""
    if path in places.lines or len(path) < 2 or path[0] != "sweep":
        return path
    for known in places.lines:
        parts = tuple(part for part in known[1:] if isinstance(part, str))
        if known[0] == "sweep" and parts and len(parts) == len(known) - 1 and _same_key(parts, path[1]):
            return (*known, *path[2:])
    return path


def _same_key(parts: tuple[str, ...], key: str | int) -> bool:
    try:
        return swept(parts) == key
    except ValueError:
        return False
