"""Every text that a report can show, collected from the sources as they are marked there.

A text is what `say` or `marked` is given, or what a constant of a file of words holds; a noun is what `counted` or
`noun` is given. Words that records and experiments are written in are closed lists elsewhere, which know no language.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import get_args, get_type_hints

import escala
from escala.terms.doubts import ADVICE, Doubt
from escala.terms.energy import PHASES
from escala.terms.experiment import ExecutionSpec, TrainSpec
from escala.terms.factors import factors
from escala.terms.published import Figure
from escala.terms.record import DataUse, Outcome
from escala.terms.trial import StrategyUse

_ROOT = Path(escala.__file__).parent
_START = ("cli_report", "report.terminal", "report.markdown", "report.html.page", "report.figures")
_TOLD = ("analyse.", "report.")
METRICS = ("accuracy", "perplexity", "F1", "exact match")
"""Of escala's own workloads; a test of theirs holds this."""


@cache
def sources() -> dict[Path, ast.Module]:
    """Files of the analysis and the report that a report comes of: all that it imports, and what those import."""
    found: dict[Path, ast.Module] = {}
    waiting = list(_START)
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        path = _path(name)
        if path is None:
            continue
        tree = ast.parse(path.read_text())
        if name.startswith(_TOLD):
            found[path] = tree
        more = {one for one in _imported(tree) if one.startswith(("analyse", "report"))} - seen
        waiting += sorted(more)
        seen |= more
    return found


def texts() -> set[str]:
    """All of them."""
    found = {one for path, tree in sources().items() for one in (_words(tree) if _of_words(path) else _said(tree))}
    return found | closed()


def closed() -> set[str]:
    """Names of closed lists, and what to do about each doubt."""
    keys = ["peer"]
    for table, kind in (("strategy", StrategyUse), ("execution", ExecutionSpec), ("train", TrainSpec)):
        keys += [f"{table}.{key}" for key in kind.__struct_fields__]
    together = [("execution.microbatch", "train.lr")]
    names = {name for key in keys for name in factors({key: 0}, {key: 1})}
    names |= {name for pair in together for name in factors(dict.fromkeys(pair, 0), dict.fromkeys(pair, 1))}
    of_lists = (one for kind in (Doubt, Figure, Outcome, get_type_hints(DataUse)["origin"]) for one in get_args(kind))
    return {*of_lists, *ADVICE.values(), *PHASES, *METRICS, *names}


def nouns() -> set[str]:
    """All that are counted, in their singular."""
    return {one for tree in sources().values() for one in _counted(tree)}


def unsaid() -> list[str]:
    """Places where a text of a file of words is used and not told, or is put together before it is told."""
    return [f"{path.relative_to(_ROOT)}:{line}" for path, tree in sources().items() for line in _unsaid(tree)]


def _path(name: str) -> Path | None:
    beneath = _ROOT.joinpath(*name.split("."))
    return next((one for one in (beneath.with_suffix(".py"), beneath / "__init__.py") if one.is_file()), None)


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("escala."):
            module = node.module.removeprefix("escala.")
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def _of_words(path: Path) -> bool:
    return path.name == "words.py"


def _words(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            yield from _strings(node.value)


def _said(tree: ast.Module) -> Iterator[str]:
    for call in _calls(tree, "say", "marked"):
        yield from _strings(call.args[0])


def _counted(tree: ast.Module) -> Iterator[str]:
    for call in _calls(tree, "counted"):
        yield from _strings(call.args[1])
    for call in _calls(tree, "noun"):
        yield from _strings(call.args[0])
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == "NOUNS" for to in node.targets):
            yield from _strings(node.value)


def _strings(node: ast.expr) -> Iterator[str]:
    """What an expression can come to, as far as it is written there."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from (*_strings(node.body), *_strings(node.orelse))
    elif isinstance(node, ast.Dict):
        yield from (one for value in node.values for one in _strings(value))


def _calls(tree: ast.AST, *names: str) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names:
            yield node


def _unsaid(tree: ast.Module) -> Iterator[int]:
    told = {id(inner) for call in _calls(tree, "say", "marked") for inner in ast.walk(call.args[0])}
    # A table of words may be gone through, and each of them told.
    told |= {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "items"}
    for node in ast.walk(tree):
        is_word = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in _MODULES
        if is_word and id(node) not in told:
            yield node.lineno
    for call in _calls(tree, "say", "marked", "noun"):
        yield from (inner.lineno for inner in ast.walk(call.args[0]) if isinstance(inner, ast.JoinedStr | ast.BinOp))


_MODULES = ("words", "chart_words")
