"""Reading a data set once from beginning to end, to say what it holds and everything that is wrong with it.

A run stops at the first fault. This goes on: each part is read although another is damaged, and every label outside
the classes is counted. Where a reader cannot go on within a part, one fault is reported for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from escala.data import find
from escala.data.base import Facts, Inputs, Part, Source, Targets
from escala.data.check_text import check_texts
from escala.data.checked import Checked, Fault, Faults, PartFacts, Progress, Scanned, class_name
from escala.data.survey import read_through
from escala.data.texts import TextSource

_NAMED = 10
"""Classes that a sentence names."""


def check(name: str, environ: Mapping[str, str], progress: Progress, *, strict: bool = False) -> Checked:
    """Read the named set, or what lies at a path, from beginning to end, in bounded memory.

    `strict`: of folders of images, take what a decoder warns of for a fault. Raises EscalaError DATA-PATH where there
    is nothing to read; what is wrong with what is there is returned.
    """
    return check_source(name, find(name, environ), progress, strict=strict)


def check_source(name: str, source: Source | TextSource, progress: Progress, *, strict: bool = False) -> Checked:
    """Read a source, asked for by `name`, from beginning to end."""
    faults, found = Faults(), None
    scan = source.scan(faults, progress, strict=strict) if isinstance(source, Scanned) else None
    if scan is not None and faults.count:
        names = scan.class_names
        first = tuple(faults.first)
        return Checked(
            name,
            "real",
            name,
            "images",
            "",
            len(names),
            names,
            None,
            None,
            scan.parts,
            first,
            faults.count,
            sizes=scan.sizes,
        )
    with faults.kept():
        if isinstance(source, TextSource):
            found = check_texts(source, source.facts(), faults, progress)
        else:
            found = _check_rows(source, source.facts(), faults, progress)
    if found is not None:
        unused = ("no files of images are in it, so --strict looks at nothing more",) if strict and not scan else ()
        return replace(found, notes=(*found.notes, *unused), sizes=scan.sizes if scan else {})
    return Checked(name, "", "", "", "", 0, (), None, None, (), tuple(faults.first), faults.count)


def _check_rows(source: Source, facts: Facts, faults: Faults, progress: Progress) -> Checked:
    targets = dict[Part, Targets]()
    # A file that holds both is read for its labels and again for its inputs.
    told = set[Fault]()
    for part in source.parts():
        with faults.kept(told):
            targets[part] = source.targets(part)
            _check_labels(facts, part, targets[part], faults)
    _check_classes(facts, targets, faults)
    seen = _Seen(facts.where, faults)
    digest = _read(source, facts, targets, seen, progress, told)
    return Checked(
        facts.name,
        facts.origin,
        facts.where,
        facts.kind,
        digest,
        facts.classes,
        facts.class_names,
        facts.shape,
        facts.dtype,
        tuple(_part(facts, part, found) for part, found in targets.items()),
        tuple(faults.first),
        faults.count,
        facts.notes,
        seen.low,
        seen.high,
        skipped=facts.skipped,
    )


@dataclass
class _Seen:
    """What the inputs hold, block by block."""

    where: str
    faults: Faults
    low: float | None = None
    high: float | None = None

    def look(self, part: Part, first: int, block: Inputs) -> None:
        """Take in a block that begins with row `first`: its extremes, and rows with a value that is not finite."""
        if block.dtype.kind == "f" and not np.isfinite(block).all():
            rows = np.flatnonzero(~np.isfinite(block.reshape(len(block), -1)).all(axis=1))
            what = f"the inputs of row {first + rows[0]:,} (from 0) hold a value that is not finite"
            self.faults.add(Fault("DATA-VALUE", f"{self.where}, {part}", what, len(rows)))
        elif block.size:
            low, high = float(block.min()), float(block.max())
            self.low = low if self.low is None else min(self.low, low)
            self.high = high if self.high is None else max(self.high, high)


@dataclass
class _Followed(Source):
    """A source that tells which parts somebody began to read."""

    source: Source
    begun: list[Part] = field(default_factory=list)

    def facts(self) -> Facts:
        return self.source.facts()

    def targets(self, part: Part) -> Targets:
        return self.source.targets(part)

    def parts(self) -> tuple[Part, ...]:
        return self.source.parts()

    def side(self, part: Part) -> Iterator[bytes]:
        return self.source.side(part)

    def blocks(self, part: Part) -> Iterator[Inputs]:
        self.begun.append(part)
        yield from self.source.blocks(part)


def _read(
    source: Source, facts: Facts, targets: dict[Part, Targets], seen: _Seen, progress: Progress, told: set[Fault]
) -> str:
    """Read all rows of all parts. Returns their digest, or nothing where one of them could not be read.

    Faults that were `told` already are not counted again.
    """
    followed = _Followed(source)

    def keep(part: Part, first: int, block: Inputs) -> None:
        seen.look(part, first, block)
        progress(part, first + len(block), len(targets[part]) if part in targets else None)

    digest = ""
    if len(targets) == len(source.parts()):
        with seen.faults.kept():
            digest = read_through(followed, facts, targets, keep)
    if digest:
        return digest
    # The part in which it broke off has its fault; those behind it have still to be read.
    for part in source.parts()[len(followed.begun) :]:
        with seen.faults.kept(told):
            first = 0
            for block in source.blocks(part):
                keep(part, first, block)
                first += len(block)
    return ""


def _check_labels(facts: Facts, part: Part, targets: Targets, faults: Faults) -> None:
    if not facts.classes or targets.ndim != 1:
        return
    wrong = np.flatnonzero((targets < 0) | (targets >= facts.classes))
    named = (
        Fault(
            "DATA-LABEL",
            f"{facts.where}, {part}",
            f"the label of row {row:,} (from 0) is {targets[row]} (labels go from 0 to {facts.classes - 1})",
        )
        for row in wrong
    )
    faults.add_all(named, len(wrong))


def _check_classes(facts: Facts, targets: Mapping[Part, Targets], faults: Faults) -> None:
    """Look for classes that are judged but never learnt."""
    if not facts.classes or "train" not in targets or targets["train"].ndim != 1:
        return
    learnt = set(np.unique(targets["train"]).tolist())
    for part, found in targets.items():
        unknown = [label for label in np.unique(found).tolist() if 0 <= label < facts.classes and label not in learnt]
        if unknown:
            names = ", ".join(class_name(facts.class_names, label) for label in unknown[:_NAMED])
            what = f"{len(unknown)} of its classes have no training row: {names}"
            faults.add(Fault("DATA-CLASS", f"{facts.where}, {part}", what, len(unknown)))


def _part(facts: Facts, part: Part, targets: Targets) -> PartFacts:
    if not facts.classes or targets.ndim != 1:
        return PartFacts(part, len(targets))
    inside = targets[(targets >= 0) & (targets < facts.classes)]
    return PartFacts(part, len(targets), tuple(np.bincount(inside, minlength=facts.classes).tolist()))
