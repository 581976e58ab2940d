"""What is said of scores: the price of speed, targets that were missed, and what one run cannot tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from escala.analyse import parity
from escala.analyse.language import marked, noun, say
from escala.analyse.row import Interval, Summary
from escala.analyse.to_score import mostly_never
from escala.analyse.wording import (
    interval_text,
    listed,
    name,
    number,
    reached_text,
    score_name,
    speedup_of,
    target_text,
    times_text,
)
from escala.terms.doubts import Doubt

_RANKED = marked(
    "{row} was {times} as fast as {baseline} and cost {amount} of {score} ({one} against {other}), within the "
    "tolerance of {tolerance}."
)
_NOT_RANKED = marked(
    "{row} was {times} as fast as {baseline} and cost {amount} of {score} ({one} against {other}): more than the "
    "tolerance of {tolerance}, so it is not ranked."
)
_RANKED_LOWER = marked(
    "{row} was {times} as fast as {baseline} and cost {amount} more {score} ({one} against {other}), within the "
    "tolerance of {tolerance}."
)
_NOT_RANKED_LOWER = marked(
    "{row} was {times} as fast as {baseline} and cost {amount} more {score} ({one} against {other}): more than the "
    "tolerance of {tolerance}, so it is not ranked."
)
_FIRST = marked("{row} came to {target} first: {times} as fast as {baseline}, in {soon} against {other}.")
_NO_RANK = marked(
    "The baseline {row} has no time to score ({reached}), so nothing is compared and no winner is named: raise "
    "train.epochs or lower train.until."
)


def has_price(row: Summary) -> bool:
    """Whether the row was faster than the baseline, with repeats that show a worse score."""
    found = speedup_of(row)
    several = row.score is not None and len(row.score.values) > 1 and "score untested" not in row.doubts
    return found is not None and found.low > 1 and several and parity.shown_worse(row)


def price(row: Summary, baseline: Summary) -> str:
    """`ddp x2 was 1.80x [1.75, 1.85] as fast as single and cost 2.3 points of accuracy (0.8470 against 0.8700)`."""
    found, own, other, worse = speedup_of(row), row.score, baseline.score, row.score_lost
    assert found is not None
    assert own is not None
    assert other is not None
    assert worse is not None
    ways = (_NOT_RANKED, _NOT_RANKED_LOWER) if "score below baseline" in row.doubts else (_RANKED, _RANKED_LOWER)
    return say(
        ways[row.score_better == "lower"],
        row=name(row),
        times=times_text(found),
        baseline=name(baseline),
        amount=parity.amount_text(row, worse.median),
        score=score_name(row.score_name),
        one=number(own.median, 4),
        other=number(other.median, 4),
        tolerance=parity.tolerance_text(row),
    )


def untested(row: Summary, baseline: Summary) -> str:
    """That a gap was seen in single runs, which show none."""
    return say(
        "One run cannot tell whether {row} keeps the {score} of {baseline}: {reason}.",
        row=name(row),
        score=score_name(row.score_name),
        baseline=name(baseline),
        reason=row.doubts.get("score untested"),
    )


def first_there(best: Summary, baseline: Summary) -> str:
    """How soon the fastest row came to the target, and how soon the baseline did."""
    return say(
        _FIRST,
        row=name(best),
        target=target_text(best),
        times=speed_text(best),
        baseline=name(baseline),
        soon=_soon(best),
        other=_soon(baseline),
    )


def speed_text(row: Summary) -> str:
    """`1.31x [1.25, 1.38]`, or that there is none."""
    found = speedup_of(row)
    return times_text(found) if found else say("no speed-up")


def missed(block: Sequence[Summary]) -> Iterator[str]:
    """Rows of which some runs never came to the target, and were ranked all the same."""
    for row in block:
        if "target missed" in row.doubts and not mostly_never(row):
            yield say("{row}: {reached}; the others count as never.", row=name(row), reached=_reached(row))


def never(row: Summary) -> str:
    """Why a row that mostly did not come to the target has no rank."""
    return say("{reached}, so its time to score is never", reached=_reached(row))


def no_rank_without(baseline: Summary, block: Sequence[Summary]) -> str:
    """What stands in place of a ranking where the baseline mostly did not come to the target."""
    others = [_alone(row) for row in block if row.to_score_s and not row.is_baseline and not mostly_never(row)]
    told = say(_NO_RANK, row=name(baseline), reached=_reached(baseline))
    return f"{told} {say('{rows} came there.', rows=listed(others))}" if others else told


def _alone(row: Summary) -> str:
    return say("{row} (in {soon})", row=name(row), soon=_soon(row))


def _reached(row: Summary) -> str:
    reason: dict[Doubt, str] = row.doubts
    return reason.get("target missed") or reached_text(row)


def _soon(row: Summary) -> str:
    parts = [f"{interval_text(row.to_score_s)} s"] if row.to_score_s else []
    if row.to_score_epochs:
        parts.append(_epochs(row.to_score_epochs))
    return listed(parts) if parts else ""


def _epochs(found: Interval) -> str:
    return f"{found.median:g} {noun('epoch', plural=found.median != 1)}"
