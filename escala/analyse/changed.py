"""Repeats of one trial are put together only where they saw the same data."""

from __future__ import annotations

from collections.abc import Iterable

from escala.analyse.compare import point_text
from escala.analyse.group import Group, definition
from escala.analyse.plain import LONGEST_NAME, plain
from escala.analyse.wording import counted
from escala.terms.errors import EscalaError


def refuse_changed_data(groups: Iterable[Group]) -> None:
    """Raises EscalaError DATA-HASH where repeats of one trial on one kind of host saw data of different content."""
    seen: dict[tuple[object, ...], Group] = {}
    for group in groups:
        first = seen.setdefault((definition(group.records[0]), group.likeness), group)
        if first.digest is None or group.digest is None or first.digest == group.digest:
            continue
        trial = group.records[0].trial
        counts = [f"{counted(len(one.records), 'run')} saw {plain(one.digest, 12)}" for one in (first, group)]
        raise EscalaError(
            "DATA-HASH",
            ", ".join(part for part in (plain(trial.label, LONGEST_NAME), point_text(trial.point)) if part),
            f"the data {plain(trial.data, LONGEST_NAME)} changed between repeats: {', '.join(counts)}",
            expected="every repeat on the same rows",
            next_step="run it again with another --out folder",
        )
