"""Reading a whole data set once: every check is made, every row hashed, and who wants to may keep the rows."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TypeAlias

from escala.data.base import Description, Facts, Inputs, Part, Request, Source, Targets
from escala.data.split import Kept, split_rows
from escala.terms.errors import EscalaError

Keep: TypeAlias = Callable[[Part, int, Inputs], None]
"""Is handed each block of rows with the number of its first row."""


@dataclass(frozen=True)
class Survey:
    """A checked data set: its description, every row's class, and what each training row is used for."""

    facts: Facts
    targets: dict[Part, Targets]
    kept: Kept
    description: Description


def survey(source: Source, request: Request) -> Survey:
    """Check a data set before it is used: headers, lengths, labels, and every byte that was read from a file.

    A generated set is not drawn for this, so its digest stays empty. Raises EscalaError DATA-* where the data
    are wrong, CFG-RANGE where the request does not fit them.
    """
    facts = source.facts()
    targets = {part: source.targets(part) for part in source.parts()}
    kept = split_rows(targets["train"], request, own_validation="validation" in targets)
    digest = read_through(source, facts, targets) if facts.origin == "real" else ""
    held_out = len(targets["validation"]) if kept.published else len(kept.validation)
    rows = {"train": len(kept.train), "validation": held_out, "test": len(targets["test"])}
    return Survey(facts, targets, kept, Description(**asdict(facts), digest=digest, rows=rows))


def read_through(source: Source, facts: Facts, targets: dict[Part, Targets], keep: Keep | None = None) -> str:
    """Read all rows and return the sha256 (hex) of them, their shapes and classes, however they were stored.

    Raises EscalaError where the data are damaged, DATA-CHANGED where the files were replaced meanwhile.
    """
    seen = hashlib.sha256()
    for part in source.parts():
        rows = len(targets[part])
        seen.update(f"{part} {rows} {facts.shape} {facts.dtype}\n".encode())
        first = 0
        for block in source.blocks(part):
            if block.shape[1:] != facts.shape or first + len(block) > rows:
                raise changed(facts)
            seen.update(block.tobytes())
            if keep is not None:
                keep(part, first, block)
            first += len(block)
        if first != rows:
            raise changed(facts)
        seen.update(targets[part].astype("<i8").tobytes())
        for piece in source.side(part):
            seen.update(piece)
    return seen.hexdigest()


def changed(facts: Facts) -> EscalaError:
    """The files are not what they were a moment ago."""
    return EscalaError(
        "DATA-CHANGED",
        facts.where,
        f"the files of {facts.name} changed while they were read",
        next_step="give the same command again once nothing writes there",
    )
