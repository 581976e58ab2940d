"""The ranking drawn from summaries, in words, with every doubt and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from string import ascii_lowercase
from typing import Any

from msgspec import Struct

from escala.analyse.compare import Block, blocks, headings
from escala.analyse.language import marked, say
from escala.analyse.row import Summary
from escala.analyse.sentences import sentences_of, winner_of
from escala.analyse.wording import counted, name
from escala.terms.doubts import ADVICE, Doubt

NOTHING = marked("Nothing has been recorded yet.")
NAMED = 3
"""Rows that a caution names, before it only counts."""


class Standing(Struct, frozen=True):
    """How one block of comparable rows came out. `heading` says what sets it apart, if there are several."""

    heading: str
    point: dict[str, Any]
    digest: str | None
    likeness: tuple[str, ...]
    baseline: str | None
    winner: str | None
    sentences: tuple[str, ...]


class Caution(Struct, frozen=True):
    """One doubt: the letter that marks its rows in the table, where it was found, and what to do."""

    mark: str
    doubt: Doubt
    where: str
    advice: str


class Verdict(Struct, frozen=True):
    """`winner` is the label that won every block, if there is one. Each doubt present stands here once."""

    winner: str | None
    standings: tuple[Standing, ...]
    cautions: tuple[Caution, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The whole verdict in words, each sentence saying which block it is about."""
        if not self.standings:
            return (say(NOTHING),)
        return tuple(
            f"{standing.heading}: {sentence}" if standing.heading else sentence
            for standing in self.standings
            for sentence in standing.sentences
        )


def judge(summaries: Sequence[Summary]) -> Verdict:
    """The verdict over summaries as `summarise` gave them."""
    found = blocks(summaries)
    standings = tuple(_standing(block, heading) for block, heading in zip(found, headings(found), strict=True))
    winners = {standing.winner for standing in standings}
    return Verdict(
        winner=winners.pop() if len(winners) == 1 else None,
        standings=standings,
        cautions=tuple(_cautions(summaries)),
    )


def _standing(block: Block, heading: str) -> Standing:
    winner = winner_of(block)
    first = block[0]
    return Standing(
        heading=heading,
        point=first.point,
        digest=first.digest,
        likeness=first.likeness,
        baseline=first.baseline,
        winner=winner.label if winner else None,
        sentences=sentences_of(block),
    )


def _cautions(summaries: Sequence[Summary]) -> Iterable[Caution]:
    present = [doubt for doubt in ADVICE if any(doubt in row.doubts for row in summaries)]
    for mark, doubt in zip(ascii_lowercase, present, strict=False):
        yield Caution(mark, doubt, _where(doubt, summaries), say(ADVICE[doubt]))


def _where(doubt: Doubt, summaries: Sequence[Summary]) -> str:
    """`single and ddp x2: 3 runs`, or `every row: 3 runs`, or how many rows where naming them takes too long."""
    rows = [row for row in summaries if doubt in row.doubts]
    reasons = list(dict.fromkeys(row.doubts[doubt] for row in rows))
    labels = list(dict.fromkeys(name(row) for row in rows))
    measured = sum(1 for row in summaries if row.outcomes.get("done"))
    if len(rows) == measured > 1:
        who = say("every row")
    elif len(labels) <= NAMED:
        who = ", ".join(labels)
    else:
        others = counted(len(labels) - NAMED, "other")
        who = say("{parts} and {last}", parts=", ".join(labels[:NAMED]), last=others)
    told = f"{who}: {reasons[0]}"
    if len(reasons) == 1:
        return told
    return say("{told}, and {others}", told=told, others=counted(len(reasons) - 1, "other reason"))
