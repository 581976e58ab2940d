"""Campaigns that every writer must show, and names that none may obey."""

from __future__ import annotations

from collections.abc import Sequence

import recorded as made
from msgspec.structs import replace

from escala.analyse.row import Summary
from escala.analyse.summary import summarise
from escala.analyse.verdict import Verdict, judge
from escala.terms.record import Record

HOSTILE = (
    "[red]x[/red]",
    "[link=http://evil]y[/link]",
    "<script>alert(1)</script>",
    "<!-- gone",
    "=cmd()",
    "+1+cmd|' /C calc'!A0",
    "@SUM(A1)",
    "-2+3",
    "\t=tab()",
    "\r=return()",
    "＝wide()",
    "＠wide()",
    "＋wide()",
    "－wide()",
    "semi;=colon()",
    'quo"te,comma',
    "a|b|c",
    "back`tick`",
    "*star* _under_ ~tilde~",
    "![img](http://evil/x.png)",
    "https://evil.example www.evil.example",
    "# heading",
    "1. one",
    "- dash",
    "> quote",
    "$math$",
    "&lt;entity&gt;",
    "ends in \\",
    "pipe \\| escaped",
    ":bomb: :smile:",
    "new\nline\r\n\r\n| cell |",
    "\x1b[31mred\x1b[0m\x1b]0;title\x07",
    "\x9b2Jclear",
    "\u202eoverride\u202c \u2067isolate\u2069",
    "zero\u200bwidth\ufeff",
    "שלום עולם",
    "表格 " * 8,
    "x" * 300,
)


def shown(records: Sequence[Record], baseline: str | None = "single") -> tuple[tuple[Summary, ...], Verdict]:
    """What every writer is given."""
    summaries = summarise(records, baseline)
    return summaries, judge(summaries)


def without_score() -> list[Record]:
    """Rows that were trained but not tested."""
    single = made.repeats("single", made.SLOW)
    faster = made.repeats("ddp x2", made.FAST, ways=2)
    bare = [*single, *faster]
    return [replace(record, score=None) for record in bare]


def hostile() -> list[Record]:
    """A row under each hostile name, which is also its reason where it failed."""
    found = made.repeats("single", made.SLOW)
    for place, name in enumerate(HOSTILE):
        found += made.repeats(name, made.FAST, ways=2, strategy="ddp")
        found.append(
            made.make(name, 9, ways=2, strategy="ddp", outcome="failed", reason=f"{place}: {name}", data=None)
        )
    return found


CAMPAIGNS = {
    "clean": made.clean_campaign,
    "troubled": made.troubled_campaign,
    "swept": made.swept_campaign,
    "two hosts": made.two_hosts,
    "nothing": list,
    "without score": without_score,
    "steps": lambda: (
        made.repeats("single", made.SLOW, steps=300) + made.repeats("ddp x2", made.FAST, ways=2, steps=300)
    ),
    "hostile": hostile,
}
