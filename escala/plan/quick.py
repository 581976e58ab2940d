"""The quick form of an experiment: the same paths through the code with less work, laid over the full one.

`[quick]` holds the keys that `--set` takes, also those of `[sweep]`, whose lists it replaces; a case may hold a table
`quick` that is laid over what it sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from escala.plan.explain import Fault, faults
from escala.plan.keys import Misfit, drop, follow, other_budget, parts_of, put, swept
from escala.plan.locate import Path
from escala.plan.vary import blamed_on, flattened
from escala.plan.words import dotted

_TABLES = ("workload", "train", "execution", "strategy", "measure", "sweep")


class Laid(NamedTuple):
    """A value of the quick form: the path where it was put, and where it stands in the file."""

    path: Path
    at: Path


def flatten(tree: dict[str, Any]) -> None:
    """Make every table of dotted keys in an experiment flat. Raises Misfit for what is no key, or there twice."""
    for name in ("sweep", "quick"):
        if isinstance(tree.get(name), dict):
            tree[name] = flattened(tree[name], (name,))
    for list_name, names in (("case", ("set", "quick")), ("published", ("point",))):
        for number, item in _tables(tree, list_name):
            for name in names:
                if isinstance(item.get(name), dict):
                    item[name] = flattened(item[name], (list_name, number, name))


def has_quick(tree: dict[str, Any]) -> bool:
    """Whether an experiment has a quick form."""
    return bool(tree.get("quick")) or any(case.get("quick") for _, case in _tables(tree, "case"))


def lay(tree: dict[str, Any]) -> tuple[Laid, ...]:
    """Put the quick form into a flattened experiment. Raises Misfit for a key or value that does not fit."""
    if not has_quick(tree):
        what, step = "this experiment has no quick form", "add a table [quick] to it, or leave out --quick"
        raise Misfit(Fault("CFG-QUICK", (), what, "", step))
    laid: list[Laid] = []
    # What is no table stays where it is, for the schema to refuse.
    for key, value in tree["quick"].items() if isinstance(tree.get("quick"), dict) else ():
        with blamed_on(("quick", key)):
            path = _put_one(key, value, tree, laid)
        laid.append(Laid(path, ("quick", key)))
    for number, case in _tables(tree, "case"):
        if isinstance(case.get("set"), dict) and isinstance(case.get("quick"), dict):
            laid += _over_case(number, case["set"], case["quick"])
    return tuple(laid)


def take_out(tree: dict[str, Any]) -> None:
    """Leave nothing of the quick form in an experiment that is right without it."""
    if isinstance(tree.get("quick"), dict):
        del tree["quick"]
    for _, case in _tables(tree, "case"):
        if isinstance(case.get("quick"), dict):
            del case["quick"]


def _put_one(key: str, value: Any, tree: dict[str, Any], laid: list[Laid]) -> Path:
    parts = parts_of(key)
    if parts[0] == "sweep" and len(parts) > 1:
        parts = ("sweep", swept(parts[1:]))
    path, kind = follow(parts, tree)
    if path[0] not in _TABLES:
        what = f"{key} cannot be in the quick form"
        raise Misfit(
            Fault("CFG-KEY", path, what, f"keys of {', '.join(_TABLES)} can", "a case has its own quick table")
        )
    if any(earlier.path == path for earlier in laid):
        raise Misfit(Fault("CFG-DUP", path, f"{dotted(path)} is given twice in the quick form"))
    if fault := next(faults(value, kind, path), None):
        raise Misfit(fault)
    other = other_budget(path)
    if other and all(earlier.path != other for earlier in laid):
        drop(tree, other)
    put(tree, path, value)
    return path


def _over_case(number: int, settings: dict[str, Any], quick: dict[str, Any]) -> Iterator[Laid]:
    for key, value in quick.items():
        other = other_budget(parts_of(key))
        if other and dotted(other) not in quick:
            settings.pop(dotted(other), None)
        settings[key] = value
        yield Laid(("case", number, "set", key), ("case", number, "quick", key))


def _tables(tree: dict[str, Any], name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The tables of a list that has not been checked yet."""
    items = tree.get(name)
    for number, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, dict):
            yield number, item
