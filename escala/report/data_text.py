"""What the verb `escala data` shows: the named sets, a checked set, and what was fetched or prepared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain
from escala.analyse.wording import counted, number
from escala.data.catalogue import Listed, told_places
from escala.data.checked import Checked, PartFacts, class_name
from escala.data.get import Got
from escala.report.screen import columns_of, drawn, notes

MOST_CLASSES = 20
"""With more classes than this, the fewest and the most rows of a class are shown instead of all of them."""


def sets_text(sets: Sequence[Listed], *, width: int | None = None) -> str:
    """The named sets: what each is, which workloads are made for it, and where it lies. `width` in columns."""
    return drawn(_sets(sets), columns_of(width))


def check_text(found: Checked, *, width: int | None = None) -> str:
    """A checked set: what it holds, what is odd and what is wrong. `width` in columns."""
    return drawn(_checked(found), columns_of(width))


def got_text(got: Got, *, width: int | None = None) -> str:
    """What was fetched, and how to use it. `width` in columns."""
    return drawn(_got(got), columns_of(width))


def _sets(sets: Sequence[Listed]) -> Iterator[RenderableType]:
    grid = _grid()
    for title in ("set", "kind", "what it is", "for"):
        grid.add_column(title, overflow="fold")
    grid.add_column("found", overflow="fold", ratio=1)
    for one in sets:
        grid.add_row(*map(Text, (one.name, one.kind, one.about, ", ".join(one.workloads), _found(one))))
    yield grid
    yield Text("")
    yield notes(
        [
            ("looked for in", ", ".join(told_places("NAME"))),
            ("generated", "drawn when it is used; NAME:TRAIN+TEST sets the number of rows"),
            ("any other", "the path of a file or folder, or hub:OWNER/NAME"),
        ]
    )


def _found(one: Listed) -> str:
    if one.generated:
        return "generated"
    if one.fault:
        return f"damaged: {plain(one.fault, LONGEST_REASON)}"
    if one.found:
        return plain(one.found, LONGEST_REASON)
    return f"no; escala data get {one.name}" if one.can_get else "no"


def _checked(found: Checked) -> Iterator[RenderableType]:
    yield Text(plain(found.name, LONGEST_REASON), style="bold")
    yield notes([(name, plain(value, LONGEST_REASON)) for name, value in _facts(found)])
    if found.parts:
        yield Text("")
        yield _counts(found)
    if found.sizes:
        yield Text("")
        yield Text("Sizes and modes of the files", style="bold")
        yield notes([(plain(name, LONGEST_NAME), f"{count:,}") for name, count in found.sizes.items()])
    if found.notes:
        yield Text("")
        yield notes([("note", plain(note, LONGEST_REASON)) for note in found.notes])
    yield Text("")
    if found.sound:
        yield Text("Sound: every row was read, nothing is wrong.")
        return
    yield Text(f"{counted(found.fault_count, 'fault')}", style="bold")
    yield notes([(fault.code, f"{plain(fault.where)}: {plain(fault.what)}") for fault in found.faults])
    told = sum(fault.count for fault in found.faults)
    if told < found.fault_count:
        yield Text(f"and {found.fault_count - told:,} more")


def _facts(found: Checked) -> Iterator[tuple[str, str]]:
    if found.origin:
        yield "data", f"{found.origin}, {found.where}"
    if found.kind:
        yield "kind", found.kind
    if found.shape is not None:
        yield "row", f"{' x '.join(map(str, found.shape)) or 'a number'}, {found.dtype}"
    if found.low is not None and found.high is not None:
        yield "values", f"{number(found.low)} to {number(found.high)}"
    if found.classes:
        yield "classes", str(found.classes)
    if found.skipped:
        yield "skipped", counted(found.skipped, "damaged row")
    if found.digest:
        yield "sha256", found.digest


def _counts(found: Checked) -> RenderableType:
    grid = _grid()
    grid.add_column("")
    for part in found.parts:
        grid.add_column(part.part, justify="right")
    for name, cells in _count_rows(found):
        grid.add_row(*map(Text, (plain(name, LONGEST_NAME), *cells)))
    return grid


def _count_rows(found: Checked) -> Iterator[tuple[str, list[str]]]:
    parts = found.parts
    if any(part.per_class for part in parts) and found.classes <= MOST_CLASSES:
        for label in range(found.classes):
            yield class_name(found.class_names, label), [_of_class(part, label) for part in parts]
    elif any(part.per_class for part in parts):
        yield "fewest of a class", [_extreme(part, found, least=True) for part in parts]
        yield "most of a class", [_extreme(part, found, least=False) for part in parts]
    rows = {"images": "rows", "questions": "questions"}.get(found.kind, "documents")
    yield rows, [f"{part.rows:,}" for part in parts]
    for name in parts[0].figures:
        yield name, [f"{part.figures[name]:,}" if name in part.figures else "" for part in parts]


def _of_class(part: PartFacts, label: int) -> str:
    return f"{part.per_class[label]:,}" if label < len(part.per_class) else ""


def _extreme(part: PartFacts, found: Checked, *, least: bool) -> str:
    if not part.per_class:
        return ""
    count = min(part.per_class) if least else max(part.per_class)
    return f"{count:,} ({plain(class_name(found.class_names, part.per_class.index(count)), LONGEST_NAME)})"


def _got(got: Got) -> Iterator[RenderableType]:
    yield Text(f"{got.name} lies in {got.folder}", style="bold")
    grid = _grid()
    grid.add_column("file", overflow="fold")
    grid.add_column("bytes", justify="right", no_wrap=True)
    grid.add_column("sha256", overflow="fold")
    grid.add_column("", no_wrap=True)
    for file in got.files:
        told = "as published" if file.compared else "not compared: none is published"
        grid.add_row(*map(Text, (file.name, f"{file.size:,}", file.sha256, told)))
    yield grid
    yield Text("")
    yield notes([("licence", got.licence), ("check it", f"escala data check {got.folder}")])


def _grid() -> Table:
    return Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
