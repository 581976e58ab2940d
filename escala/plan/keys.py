"""Dotted keys, as `--set` and `[sweep]` write them: taken apart, followed through an experiment, and set.

Experiments are plain dictionaries here, as TOML gives them, so that a value set from the command line goes
through the same checks as one in the file.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import inspect

from escala.plan.explain import Fault, below, schema, unknown_key
from escala.plan.locate import DEEPEST, Path, unquoted
from escala.plan.words import dotted, shown
from escala.terms.experiment import StrategySpec
from escala.terms.words import did_you_mean, nearest

# A part without quotes may hold spaces, since a shell removes the quotes around `strategy."ddp x2".ways`.
_PART = re.compile(r"""(\s*(?P<quoted>"(?:\\.|[^"\\\n])*"|'[^'\n]*')\s*|(?P<bare>[^."'=]+))(?P<sign>[.=]|\Z)""")
_BUDGETS = {"epochs": "steps", "steps": "epochs"}


class Misfit(Exception):
    """Something is wrong with a key or its values. Carries the fault; the reader knows the line."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


def split(text: str) -> tuple[tuple[str, ...], str | None]:
    """Parts of a dotted key, and what stands after the first `=` outside quotes (None: there is no `=`).

    Raises ValueError where it is no key.
    """
    parts: list[str] = []
    position, sign = 0, "."
    while sign == ".":
        match = _PART.match(text, position)
        part = match and (match["quoted"] or match["bare"].strip())
        if match is None or not part or len(parts) == DEEPEST:
            raise ValueError(f"no key at {shown(text[position:])}")
        parts.append(unquoted(part))
        position, sign = match.end(), match["sign"]
    return tuple(parts), text[position:] if sign == "=" else None


def parts_of(text: str) -> tuple[str, ...]:
    """Parts of a dotted key that stands alone. Raises ValueError where it is no key."""
    parts, value = split(text)
    if value is not None:
        raise ValueError("a key holds no = outside quotes")
    return parts


def swept(parts: tuple[str, ...]) -> str:
    """The one key of `[sweep]` that `parts` stand for: `"train.batch"` and `train.batch` are the same.

    Raises ValueError where it is no key.
    """
    return dotted(parts_of(parts[0]) if len(parts) == 1 else parts)


def follow(parts: tuple[str, ...], tree: dict[str, Any]) -> tuple[Path, inspect.Type]:
    """Where `parts` lead in an experiment, strategies found by number, label or name; and the schema there.

    Raises Misfit with `CFG-KEY`.
    """
    path = Path()
    kind: inspect.Type = schema()
    here: Any = tree
    for part in parts:
        key: str | int = part
        item: Any = None
        if isinstance(here, list):
            key = index = _position(part, here, path)
            item = here[index]
        elif isinstance(here, dict):
            item = here.get(part)
        inner = below(kind, key)
        if inner is None or not isinstance(here, dict | list | None):
            raise Misfit(unknown_key(part, kind, path))
        path, kind, here = (*path, key), inner, item
    return path, kind


def _position(part: str, items: list[Any], path: Path) -> int:
    """Which of `items` is meant: by its number, a case by its name, and a strategy by its label or name, too."""
    numbers = [str(number) for number in range(len(items))]
    names = [str(item.get("name")) if isinstance(item, dict) else "" for item in items]
    labels = [_label(item) for item in items] if path == ("strategy",) else names if path == ("case",) else []
    for known in (numbers, labels, names if labels else []):
        if known.count(part) == 1:
            return known.index(part)
    all_of_them = [" ".join(pair) for pair in zip(numbers, labels, strict=True)] if labels else numbers
    count = max(labels.count(part), names.count(part)) if labels else 0
    kind = "strategies" if path == ("strategy",) else "cases"
    what = f"{count} {kind} are called {shown(part)}" if count else f"{dotted(path)} has no {shown(part)}"
    step = "use the number" if count else did_you_mean(nearest(part, [*labels, *names] if labels else []))
    raise Misfit(Fault("CFG-KEY", (*path, part), what, f"there are: {', '.join(all_of_them)}", step))


def _label(item: object) -> str:
    """Label of a strategy that has not been checked yet."""
    try:
        return label_of(msgspec.convert(item, StrategySpec))
    except msgspec.ValidationError:
        return "?"


def put(tree: dict[str, Any], path: Path, value: object) -> None:
    """Set `path` in an experiment to `value`; tables on the way that are missing are made."""
    here: Any = tree
    for key in path[:-1]:
        here = here[key] if isinstance(key, int) else here.setdefault(key, {})
    here[path[-1]] = value


def other_budget(path: Path) -> Path | None:
    """`train.steps` for `train.epochs` and the reverse, of a strategy's own table, too; None for other keys."""
    in_train = path[:-1] == ("train",) or (len(path) == 4 and path[0] == "strategy" and path[2] == "train")
    return (*path[:-1], _BUDGETS[str(path[-1])]) if in_train and path[-1] in _BUDGETS else None


def drop(tree: dict[str, Any], path: Path) -> None:
    """Take `path` out of an experiment, if it is there."""
    here: Any = tree
    for key in path[:-1]:
        here = here[key] if isinstance(key, int) else here.get(key, {})
    here.pop(path[-1], None)


def label_of(strategy: StrategySpec) -> str:
    """Name of the strategy's row: its label, else such as `single`, `ddp x2`, `ddp x2 cpu simulated`, `jax`."""
    if strategy.label is not None:
        return strategy.label
    words = [strategy.peer or strategy.name]
    if strategy.name != "single" or (strategy.peer is not None and strategy.ways > 1):
        words.append(f"x{strategy.ways}")
    words += [f"{name} {value}".lower() for name, value in msgspec.to_builtins(strategy.options).items()]
    if strategy.device is not None:
        words.append(strategy.device)
    if strategy.scaling == "weak":
        words.append("weak")
    if strategy.simulate:
        words.append("simulated")
    return " ".join(words)
