"""What is said of scores: the price of speed, targets that were missed, and what one run cannot tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from escala.analyse import parity
from escala.analyse.plain import LONGEST_NAME, plain
from escala.analyse.row import Interval, Summary
from escala.analyse.to_score import mostly_never
from escala.analyse.wording import counted, interval_text, listed, name, number, speedup_of, target_text, times_text
from escala.terms.doubts import Doubt


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
    cost = f"{parity.amount_text(row, worse.median)} {'more' if row.score_better == 'lower' else 'of'}"
    scores = f"{number(own.median, 4)} against {number(other.median, 4)}"
    told = f"{name(row)} was {times_text(found)} as fast as {name(baseline)} and cost {cost} {_score(row)} ({scores})"
    tolerance = f"the tolerance of {parity.tolerance_text(row)}"
    if "score below baseline" in row.doubts:
        return f"{told}: more than {tolerance}, so it is not ranked."

    return f"{told}, within {tolerance}."


def untested(row: Summary, baseline: Summary) -> str:
    """That a gap was seen in single runs, which show none."""
    return (
        f"One run cannot tell whether {name(row)} keeps the {_score(row)} of {name(baseline)}: "
        f"{row.doubts.get('score untested')}."
    )


def first_there(best: Summary, baseline: Summary) -> str:
    """How soon the fastest row came to the target, and how soon the baseline did."""
    told = f"{name(best)} came to {target_text(best)} first: "
    found = speedup_of(best)
    told += f"{times_text(found) if found else 'no speed-up'} as fast as {name(baseline)}"
    return f"{told}, in {_soon(best)} against {_soon(baseline)}"


def missed(block: Sequence[Summary]) -> Iterator[str]:
    """Rows of which some runs never came to the target, and were ranked all the same."""
    for row in block:
        if "target missed" in row.doubts and not mostly_never(row):
            yield f"{name(row)}: {_reached(row)}; the others count as never."


def never(row: Summary) -> str:
    """Why a row that mostly did not come to the target has no rank."""
    return f"{_reached(row)}, so its time to score is never"


def no_rank_without(baseline: Summary, block: Sequence[Summary]) -> str:
    """What stands in place of a ranking where the baseline mostly did not come to the target."""
    others = [_alone(row) for row in block if row.to_score_s and not row.is_baseline and not mostly_never(row)]
    came = f" {listed(others)} came there." if others else ""
    return (
        f"The baseline {name(baseline)} has no time to score ({_reached(baseline)}), so nothing is compared and no "
        f"winner is named: raise train.epochs or lower train.until.{came}"
    )


def _alone(row: Summary) -> str:
    return f"{name(row)} (in {_soon(row)})"


def _reached(row: Summary) -> str:
    reason: dict[Doubt, str] = row.doubts
    return (
        reason.get("target missed") or f"{row.reached} of {counted(row.tried or 0, 'run')} reached {target_text(row)}"
    )


def _soon(row: Summary) -> str:
    parts = [f"{interval_text(row.to_score_s)} s"] if row.to_score_s else []
    if row.to_score_epochs:
        parts.append(_epochs(row.to_score_epochs))
    return " and ".join(parts)


def _epochs(found: Interval) -> str:
    return f"{found.median:g} {'epoch' if found.median == 1 else 'epochs'}"


def _score(row: Summary) -> str:
    return plain(row.score_name, LONGEST_NAME)
