"""Executions by name: `execution = "best"` stands for a table."""

from __future__ import annotations

from typing import Any

NAMED: dict[str, dict[str, Any]] = {
    "plain": {},
    "best": {"choose": "best"},
}
"""The loop of a tutorial, and whatever short runs find fastest."""


def spell_out(tree: dict[str, Any]) -> None:
    """Put tables in the place of names, of the experiment and of its strategies; what is no name stays."""
    strategies = tree.get("strategy")
    for table in (tree, *(strategies if isinstance(strategies, list) else ())):
        name = table.get("execution") if isinstance(table, dict) else None
        if isinstance(name, str) and name in NAMED:
            table["execution"] = dict(NAMED[name])
