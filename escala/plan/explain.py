"""What is wrong with a value, in words: the key, the value given, what is allowed and the nearest name.

The schema library says that a value does not fit; the person needs to know which line to change and to
what. So the same schema is walked here. The library still has the last word when it builds the experiment.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from msgspec import inspect

from escala.plan.locate import DEEPEST, Path
from escala.plan.words import LARGEST, dotted, shown
from escala.terms.errors import EscalaError
from escala.terms.experiment import ExecutionSpec, Experiment, NormForm, StrategySpec, TrainSpec
from escala.terms.words import did_you_mean, nearest

# What a pattern of the schema allows, as a person reads it.
_FORMS = {inspect.type_info(NormForm).pattern: "local, sync, or ghost:N with N rows, N = 2 or more"}  # type: ignore[attr-defined]

# The schema keeps a strategy's own tables as plain dictionaries; they may hold only what the full ones hold.
_OWN_TABLES: dict[str, type] = {"execution": ExecutionSpec, "train": TrainSpec}


class Fault(NamedTuple):
    """One thing that is wrong: its error code, the path that is to blame and the words.

    `rival` is the list entry that it clashes with, if any, which may be to blame as well.
    """

    code: str
    path: Path
    what: str
    expected: str = ""
    next_step: str = ""
    rival: Path = ()

    def error(self, where: str) -> EscalaError:
        """The error that tells of it; `where` is a file with its line, or the words of the command line."""
        return EscalaError(self.code, where, self.what, expected=self.expected, next_step=self.next_step)


@cache
def schema(of: type = Experiment) -> inspect.StructType:
    """The schema of a table, ready to be walked."""
    kind = inspect.type_info(of)
    assert isinstance(kind, inspect.StructType)
    return kind


def below(kind: inspect.Type, key: str | int) -> inspect.Type | None:
    """Schema of what `key` holds in a table or list of `kind`; None if there is no such key."""
    match kind:
        case inspect.StructType():
            if kind.cls is StrategySpec and key in _OWN_TABLES:
                return schema(_OWN_TABLES[str(key)])
            return next((item.type for item in kind.fields if item.name == key), None)
        case inspect.DictType():
            return kind.value_type
        case inspect.VarTupleType() | inspect.ListType():
            return kind.item_type if isinstance(key, int) else None
        case inspect.UnionType():
            return next((inner for part in kind.types if (inner := below(part, key)) is not None), None)
        case inspect.AnyType():
            return kind
    return None


def faults(value: Any, kind: inspect.Type, path: Path = ()) -> Iterator[Fault]:
    """Everything wrong with a value read from TOML, as `kind` at `path` demands it, in the order of the file."""
    whole = kind
    if isinstance(kind, inspect.UnionType):
        kind = next((part for part in kind.types if _fits(value, part)), kind)
    if isinstance(kind, inspect.IntType) and isinstance(value, float) and not _recordable(value):
        yield _out_of_range(value, _range(kind), path)
        return
    if not _fits(value, kind):
        yield _wrong_type(value, kind, path)
        return
    match kind:
        case inspect.StructType():
            yield from _in_table(value, kind, path)
        case inspect.DictType():
            for key, item in value.items():
                yield from faults(item, kind.value_type, (*path, key))
        case inspect.VarTupleType() | inspect.ListType():
            if kind.min_length and len(value) < kind.min_length:
                yield Fault("CFG-RANGE", path, f"{dotted(path)} is empty", f"{kind.min_length} or more")
            for index, item in enumerate(value):
                yield from faults(item, kind.item_type, (*path, index))
        case inspect.LiteralType():
            if value not in kind.values:
                yield no_choice(value, [str(choice) for choice in kind.values], path, _words(whole))
        case inspect.StrType(pattern=str()):
            if not re.search(str(kind.pattern), value):
                what = f"{dotted(path)} = {shown(value)} is not a choice"
                yield Fault("CFG-VALUE", path, what, f"expected {_words(kind)}")
        case inspect.IntType() | inspect.FloatType():
            if not _within(value, kind):
                yield _out_of_range(value, _range(kind), path)
        case inspect.AnyType():
            yield from _in_free_value(value, path)


def unknown_key(key: str, kind: inspect.Type, path: Path) -> Fault:
    """The fault of a `key` that the table of `kind` at `path` does not have."""
    names = [item.name for item in kind.fields] if isinstance(kind, inspect.StructType) else []
    table = f"[{dotted(path)}]" if path else "the experiment"
    known = f"keys there: {', '.join(names)}" if names else f"{dotted(path)} is no table"
    step = did_you_mean(nearest(key, names)) or _elsewhere(key)
    return Fault("CFG-KEY", (*path, key), f"unknown key {dotted((key,))} in {table}", known, step)


def unknown_option(name: str, strategy: str, takes: Sequence[str], path: Path) -> Fault:
    """The fault of an option that exists, but not for this strategy."""
    known = f"options of {strategy}: {', '.join(takes) or 'none'}"
    return Fault("CFG-KEY", path, f"{strategy} takes no option {name}", known, "leave it out")


def no_choice(value: str, choices: list[str], path: Path, known: str | None = None) -> Fault:
    """The fault of a `value` that is none of `choices`; `known`: what could stand there, if more than these."""
    what = f"{dotted(path)} = {shown(value)} is not a choice"
    known = known or f"one of {', '.join(choices)}"
    return Fault("CFG-VALUE", path, what, known, did_you_mean(nearest(value, choices)))


def _in_table(table: dict[str, Any], kind: inspect.StructType, path: Path) -> Iterator[Fault]:
    for key, value in table.items():
        inner = below(kind, key)
        if inner is None:
            yield unknown_key(key, kind, path)
        else:
            yield from faults(value, inner, (*path, key))
    for item in kind.fields:
        if item.required and item.name not in table:
            place = (*path, item.name)
            yield Fault("CFG-MISSING", place, f"{dotted(place)} is missing", f"expected {_words(item.type)}")


def _in_free_value(value: Any, path: Path) -> Iterator[Fault]:
    """What no option may be, because a record could not hold it: endless, too long, a date, too deep."""
    match value:
        case bool() | str():
            return
        case int() | float():
            if not _recordable(value):
                yield _out_of_range(value, "a finite number of 64 bits", path)
        case dict() | list():
            if len(path) >= DEEPEST:
                what = f"{dotted(path[:3])} is nested too deeply"
                yield Fault("CFG-TYPE", path, what, f"{DEEPEST} levels at most")
                return
            for key, item in value.items() if isinstance(value, dict) else enumerate(value):
                yield from _in_free_value(item, (*path, key))
        case _:
            what = f"{dotted(path)} = {shown(value)} is a date or time"
            yield Fault("CFG-TYPE", path, what, "expected text, a number, true or false", "put it in quotes")


def _fits(value: object, kind: inspect.Type) -> bool:
    match kind:
        case inspect.StructType() | inspect.DictType():
            return isinstance(value, dict)
        case inspect.VarTupleType() | inspect.ListType():
            return isinstance(value, list | tuple)
        case inspect.StrType() | inspect.LiteralType():
            return isinstance(value, str)
        case inspect.BoolType():
            return isinstance(value, bool)
        case inspect.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case inspect.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(kind, inspect.AnyType)


def _wrong_type(value: object, kind: inspect.Type, path: Path) -> Fault:
    step = ""
    if isinstance(kind, inspect.VarTupleType | inspect.ListType) and isinstance(value, dict):
        step = f"write [[{dotted(path)}]] with double brackets"
    if isinstance(kind, inspect.StructType) and isinstance(value, list):
        step = f"write [{dotted(path)}] with single brackets"
    what = f"{dotted(path)} = {shown(value)} has the wrong type"
    return Fault("CFG-TYPE", path, what, f"expected {_words(kind)}", step)


def _out_of_range(value: object, allowed: str, path: Path) -> Fault:
    return Fault("CFG-RANGE", path, f"{dotted(path)} = {shown(value)} is out of range", f"allowed: {allowed}")


def _recordable(value: float) -> bool:
    return abs(value) <= LARGEST if isinstance(value, int) else math.isfinite(value)


def _within(value: float, kind: inspect.IntType | inspect.FloatType) -> bool:
    return (
        _recordable(value)
        and (kind.ge is None or value >= kind.ge)
        and (kind.gt is None or value > kind.gt)
        and (kind.le is None or value <= kind.le)
        and (kind.lt is None or value < kind.lt)
    )


def _range(kind: inspect.IntType | inspect.FloatType) -> str:
    ends = (("at least", kind.ge), ("above", kind.gt), ("at most", kind.le), ("below", kind.lt))
    words = [f"{word} {end}" for word, end in ends if end is not None]
    endless = isinstance(kind, inspect.FloatType) and kind.le is None and kind.lt is None
    return " and ".join([*words, "finite"] if endless else words)


def _words(kind: inspect.Type) -> str:
    """What `kind` takes, in words."""
    match kind:
        case inspect.StructType() | inspect.DictType():
            return "a table"
        case inspect.VarTupleType() | inspect.ListType():
            return f"a list, each {_words(kind.item_type)}"
        case inspect.LiteralType():
            return f"one of {', '.join(str(choice) for choice in kind.values)}"
        case inspect.IntType():
            return f"a whole number, {_range(kind)}"
        case inspect.FloatType():
            return f"a number, {_range(kind)}"
        case inspect.StrType(pattern=str()):
            return _FORMS[str(kind.pattern)]
        case inspect.BoolType():
            return "true or false"
        case inspect.AnyType():
            return "any value"
        case inspect.UnionType():
            return " or ".join(_words(part) for part in kind.types if not isinstance(part, inspect.NoneType))
    return "text"


def _elsewhere(key: str) -> str:
    """Where a key of exactly that name does belong, if it does."""
    homes = []
    for table in schema().fields:
        if table.name == key:
            return f"{key} belongs at the top, before the first table"
        item = below(table.type, 0)
        if isinstance(kind := item or table.type, inspect.StructType) and below(kind, key) is not None:
            homes.append(f"[[{table.name}]]" if item else f"[{table.name}]")
    return f"it belongs in {' or '.join(homes)}" if homes else ""
