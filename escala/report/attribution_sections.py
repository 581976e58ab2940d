"""Where a speed-up came from, as sections below the tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from escala.analyse.attribute import Attribution, ends_text
from escala.analyse.language import marked, say
from escala.analyse.row import Interval
from escala.analyse.sentences import ENOUGH_TO_WIN
from escala.analyse.wording import interval_text, number, speedup_text, times_text
from escala.report.column import Column
from escala.report.section import Section

HEADING = marked("Where the speed-up came from")
TOGETHER = marked("all together")
EVERY_ORDER = marked(
    "What each factor brings is its Shapley value: the mean, over all {possible} orders of adding the factors one by "
    "one, of the logarithm of what it adds. Speed-ups multiply to the whole, shares add up to 100 %."
)
SOME_ORDERS = marked(
    "Only {orders} of {possible} orders of adding the factors one by one were measured. What each factor brings is "
    "the mean over these, and another order may divide the whole otherwise."
)
OF_THE_WHOLE = marked(
    "A share is a factor's part of the logarithm of the whole; its interval is that of the factor's speed-up, as a "
    "part of the measured whole."
)
UNSURE = marked(
    "The whole, {whole}, is no sure speed-up: its interval reaches below 1, or a row has fewer than {least} runs. So "
    "nothing is called a share of it."
)
BESIDE = marked("Two factors beside each other: above 1 they bring more together than each by itself, below 1 less.")


def attribution_sections(found: Sequence[Attribution]) -> Iterator[Section]:
    """A section for each block of rows that was taken apart, or for why it was not."""
    for one in found:
        heading = f"{say(HEADING)}: {ends_text(one)}"
        if one.total is None:
            told = say("Not taken apart: {reason}.", reason=one.reason)
            yield Section(heading, (), tuple(_missing(one)), (told,))
        else:
            yield Section(heading, _columns(one, one.total), tuple(_missing(one)), tuple(_lines(one, one.total)))
            if one.interactions:
                yield _interactions(one)


def _columns(one: Attribution, total: Interval) -> tuple[Column, ...]:
    bars = [f"{number(bar.begin)} -> {number(bar.end)}" for bar in one.waterfall]
    columns = (
        Column(say("factor"), (*(say(factor.name) for factor in one.factors), say(TOGETHER)), text=True),
        Column(say("speed-up"), (*(speedup_text(factor.speedup) for factor in one.factors), speedup_text(total))),
        Column(say("share, %"), (*(_percent(factor.share) for factor in one.factors), "")),
        Column(say("waterfall"), (*bars, "")),
        Column(say("from -> to"), (*("; ".join(factor.changes) for factor in one.factors), ""), text=True),
    )
    return tuple(column for column in columns if any(column.cells))


def _percent(found: Interval | None) -> str:
    if found is None:
        return ""
    values = tuple(100 * value for value in found.values)
    return interval_text(Interval(100 * found.median, 100 * found.low, 100 * found.high, values))


def _missing(one: Attribution) -> Iterator[tuple[str, str]]:
    yield from ((say("without times"), text) for text in one.missing)
    if one.worse_score is not None:
        yield say("score"), say("the target reached a worse one than the baseline: {reason}", reason=one.worse_score)


def _lines(one: Attribution, total: Interval) -> Iterator[str]:
    known = EVERY_ORDER if one.orders == one.possible else SOME_ORDERS
    text = say(known, orders=f"{one.orders:,}", possible=f"{one.possible:,}")
    if len(one.factors) > 1:
        yield text
    if one.factors and one.factors[0].share is not None:
        yield say(OF_THE_WHOLE)
    else:
        yield say(UNSURE, whole=times_text(total), least=ENOUGH_TO_WIN)


def _interactions(one: Attribution) -> Section:
    columns = (
        Column(say("factors"), tuple(f"{say(pair.one)}, {say(pair.other)}" for pair in one.interactions), text=True),
        Column(say("together"), tuple(speedup_text(pair.speedup) for pair in one.interactions)),
    )
    return Section(say("Factors beside each other"), columns, (), (say(BESIDE),))
