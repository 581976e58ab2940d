"""The table of where the time of a step goes, of rows that were looked at with the profiler."""

from __future__ import annotations

from collections.abc import Sequence

from escala.analyse.compare import blocks, headings
from escala.analyse.language import marked, say
from escala.analyse.plain import LONGEST_NAME, plain
from escala.analyse.row import Summary, TimeShares
from escala.analyse.wording import percent
from escala.report.column import Column
from escala.report.section import Section

_LINE = marked(
    "Shares of the time of a step, mean over the seats, from a run of its own under the profiler, which slows the "
    "host. Exchange is time in which a device only exchanges with others, or waits for them in an exchange; hidden "
    "exchange goes on beside work. Idle is neither: nothing keeps the device busy, or it waits for its turn."
)


def time_share_sections(summaries: Sequence[Summary]) -> tuple[Section, ...]:
    """One section a block that has rows with such shares."""
    found = []
    every = blocks(summaries)
    for block, heading in zip(every, headings(every), strict=True):
        rows = [(row, row.time_shares) for row in block if row.time_shares is not None]
        if rows:
            title = ": ".join(part for part in (say("Where the time of a step goes"), heading) if part)
            found.append(Section(title, _columns(rows), lines=(say(_LINE),)))
    return tuple(found)


def _columns(rows: Sequence[tuple[Summary, TimeShares]]) -> tuple[Column, ...]:
    several = any(shares.seats > 1 for _, shares in rows)
    columns = [
        Column(say("strategy"), tuple(plain(row.label, LONGEST_NAME) for row, _ in rows), text=True),
        Column(say("steps"), tuple(str(shares.steps) for _, shares in rows)),
        Column(say("work"), tuple(percent(shares.work) for _, shares in rows)),
        Column(say("exchange"), tuple(percent(shares.exchange) for _, shares in rows)),
        Column(say("idle"), tuple(percent(shares.idle) for _, shares in rows)),
        Column(say("hidden\nexchange"), tuple(percent(shares.hidden) for _, shares in rows)),
    ]
    if several:
        columns.append(
            Column(say("work of the\nleast busy"), tuple(percent(shares.least_work) for _, shares in rows))
        )
    return tuple(columns)
