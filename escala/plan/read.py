"""TOML -> Experiment: read, overridden from the command line, and checked before anything starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from escala.plan.explain import faults, schema
from escala.plan.keys import Misfit, label_of, other_budget, swept
from escala.plan.locate import Path, Places, scan
from escala.plan.named import spell_out
from escala.plan.overrides import Override, apply
from escala.plan.published import misplaced
from escala.plan.quick import Laid, flatten, has_quick, lay, take_out
from escala.plan.rules import broken
from escala.plan.source import tables_of, text_of
from escala.plan.vary import Targets, Variation, resolved, targets_of, variations
from escala.plan.words import dotted, shown
from escala.terms.errors import EscalaError
from escala.terms.experiment import Experiment
from escala.terms.printable import printable

__all__ = ["Loaded", "Variation", "label_of", "parse", "read", "resolved", "variations"]


class Loaded(Struct, frozen=True):
    """An experiment that passed every check, and what it was read from.

    `text` is the source as it stands in the file, `where` the file's path or `study NAME`; `quick` says that the
    experiment is its quick form.
    """

    experiment: Experiment
    text: str
    where: str
    overrides: tuple[str, ...] = ()
    quick: bool = False


def read(source: str, overrides: Sequence[str] = (), *, quick: bool = False) -> Loaded:
    """The experiment at a TOML path, or the study of that name, with `--set` overrides put in.

    `quick`: its quick form, over which the overrides are put. Raises EscalaError of the family CFG for whatever is
    wrong; nothing has been started or built by then.
    """
    text, where = text_of(source)
    return parse(text, where, overrides, quick=quick)


def parse(text: str, where: str, overrides: Sequence[str] = (), *, quick: bool = False) -> Loaded:
    """The experiment in `text`; `where` names the text on error lines. Raises as `read` does."""
    return Loaded(_checked(text, where, overrides, quick), text, where, tuple(overrides), quick)


def _checked(text: str, where: str, overrides: Sequence[str], quick: bool) -> Experiment:
    places = scan(text)
    tree = tables_of(text, where, places)
    place = _finder(where, places, (), ())
    try:
        spell_out(tree)
        flatten(tree)
        if not quick and has_quick(tree):
            # A slip in the quick form is told before the long run, not after it.
            _checked(text, where, (), quick=True)
        laid = lay(tree) if quick else ()
        take_out(tree)
        applied = apply(overrides, tree)
        place = _finder(where, places, applied, laid)
        experiment = _decoded(tree, place)
        targets = targets_of(experiment)
        _check_all_count(experiment, targets, applied, laid, place)
        for fault in broken(experiment, targets):
            raise fault.error(place(fault.path, fault.rival))
        # Quick forms and overrides may leave out the rows that figures were published for.
        for fault in () if quick or overrides else misplaced(experiment, targets):
            raise fault.error(place(fault.path))
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


def _check_all_count(
    experiment: Experiment,
    targets: Targets,
    applied: Sequence[Override],
    laid: Sequence[Laid],
    place: Callable[..., str],
) -> None:
    """A value for what is swept, or set by a case, would change nothing, and nobody would notice."""
    varied: list[tuple[Path, Path, str, str]] = [
        (target, ("sweep", key), "is swept by", f"sweep.{key} to a list of one value")
        for key, target in targets.sweep.items()
    ]
    for number, (case, paths) in enumerate(zip(experiment.case, targets.cases, strict=True)):
        varied += [
            (
                target,
                ("case", number, "set", key),
                f"of case {shown(case.name)} is set by",
                dotted(("case", number, "set", key)),
            )
            for key, target in paths.items()
        ]
    given = [(override.path, override.where, "CFG-SET") for override in applied]
    given += [(item.path, place(item.path), "CFG-DUP") for item in laid]
    for target, at, how, instead in varied:
        for path, where, code in given:
            if target in (path[: len(target)], other_budget(path)):
                what = f"{dotted(target)} {how} {place(at)}, so this would change nothing"
                raise EscalaError(code, where, what, next_step=f"set {instead}")


def _finder(where: str, places: Places, applied: Sequence[Override], laid: Sequence[Laid]) -> Callable[..., str]:
    """A function that says where a path was given: by which override, or on which line of the file."""

    def place(path: Path, rival: Path = ()) -> str:
        for override in reversed(applied):
            inside = any(_is_inside(override.path, entry) for entry in (path, rival))
            if inside or path[: len(override.path)] == override.path:
                return override.where
        written = next((item.at for item in reversed(laid) if path[: len(item.path)] == item.path), path)
        line = places.line(_as_written(written, places))
        return where if line is None else f"{where}:{line}"

    return place


def _is_inside(path: Path, entry: Path) -> bool:
    """Whether `path` is part of the list entry `entry`, such as one strategy."""
    return len(entry) == 2 and isinstance(entry[1], int) and path[:2] == entry


def _as_written(path: Path, places: Places) -> Path:
    """The path that stands in the file for a dotted key, which may be quoted there or a table of its own."""
    table = next((path[:end] for end in (1, 3) if _is_flat(path[:end]) and len(path) > end), None)
    if path in places.lines or table is None:
        return path
    for known in places.lines:
        parts = tuple(part for part in known[len(table) :] if isinstance(part, str))
        whole = known[: len(table)] == table and parts and len(parts) == len(known) - len(table)
        if whole and _same_key(parts, path[len(table)]):
            return (*known, *path[len(table) + 1 :])
    return path


def _is_flat(table: Path) -> bool:
    """Whether a table holds dotted keys."""
    match table:
        case ("sweep" | "quick",) | ("case", int(), "set" | "quick") | ("published", int(), "point"):
            return True
    return False


def _same_key(parts: tuple[str, ...], key: str | int) -> bool:
    try:
        return swept(parts) == key
    except ValueError:
        return False
