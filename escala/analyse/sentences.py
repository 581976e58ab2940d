"""What a block of rows shows, in plain words. Nothing is said that its figures do not show."""

from __future__ import annotations

from collections.abc import Sequence

from escala.analyse import energy_words, score_words
from escala.analyse.compare import NOT_RANKED, baseline_of, ranked, rivals
from escala.analyse.parity import beyond
from escala.analyse.plain import LONGEST_NAME, LONGEST_REASON, plain
from escala.analyse.row import Summary
from escala.analyse.to_score import mostly_never
from escala.analyse.wording import (
    counted,
    listed,
    name,
    number,
    score_text,
    seconds,
    speedup_of,
    target_text,
    times_text,
)
from escala.terms.doubts import Doubt

ENOUGH_TO_WIN = 3
"""Of two runs each, one row comes out wholly ahead by chance once in three times; of three, once in ten."""

_TROUBLE = {
    "unfit": "did not fit",
    "out of memory": "ran out of memory",
    "diverged": "diverged",
    "failed": "failed",
}


def winner_of(block: Sequence[Summary]) -> Summary | None:
    """The fastest row that did the baseline's work as well as it did; None where the figures name none."""
    ranking = ranked(block)
    if len(ranking) < 2 or rivals(ranking) or min(row.runs for row in ranking) < ENOUGH_TO_WIN:
        return None
    return ranking[0]


def sentences_of(block: Sequence[Summary]) -> tuple[str, ...]:
    """The ranking, what is left out of it, what slower rows mean, the least energy, what could not be measured."""
    told = [_ranking(block)]
    ranking, baseline = ranked(block), baseline_of(block)
    if baseline is not None:
        told += [score_words.price(row, baseline) for row in block if _is_price(row)]
        single = [row for row in block if "score untested" in row.doubts and beyond(row)]
        told += [score_words.untested(row, baseline) for row in single]
    told += [_not_ranked(row) for row in block if row.runs and _is_left_out(row)]
    told += score_words.missed(block)
    if baseline is not None:
        told += [_slower(row, baseline) for row in ranking if _is_slower(row, baseline)]
    told += energy_words.fewest(ranking, ENOUGH_TO_WIN)
    told += [_trouble(row) for row in block if _TROUBLE.keys() & row.outcomes.keys()]
    told += [_disturbed(row) for row in block if row.outcomes.get("done") and not row.runs]
    return tuple(told)


def _ranking(block: Sequence[Summary]) -> str:
    measured = [row for row in block if row.runs]
    ranking = ranked(block)
    if not measured:
        return "Nothing could be timed here."
    baseline = baseline_of(block)
    if baseline is None:
        absent = plain(block[0].baseline, LONGEST_NAME)
        return f"The baseline {absent} has no times here, so nothing is compared and no winner is named."
    if baseline is not None and mostly_never(baseline):
        return score_words.no_rank_without(baseline, block)
    if len(measured) == 1:
        return f"Only {name(measured[0])} was timed here, so there is nothing to compare it with."
    if len(ranking) < 2:
        if any(mostly_never(row) for row in measured):
            return f"Too few rows came to {target_text(baseline)} to be ranked, so no winner is named."
        return "Too few rows did the same work on real devices to be ranked, so no winner is named."
    if close := rivals(ranking):
        rows = listed([_with_speedup(row) for row in (ranking[0], *close)])
        return f"{rows} cannot be told apart: their intervals overlap, so no winner is named."
    if winner_of(block) is None:
        return (
            f"{_with_speedup(ranking[0])} is fastest by its median, but fewer than {ENOUGH_TO_WIN} runs "
            "of a row may show chance, so no winner is named."
        )
    return _winner(ranking)


def _winner(ranking: Sequence[Summary]) -> str:
    best, second = ranking[0], ranking[1]
    if best.is_baseline:
        # A row with more devices that is slower gets a sentence of its own.
        told = "" if _is_slower(second, best) else f"; the next is {_with_speedup(second)}"
        first = "is fastest" if best.target is None else f"came to {target_text(best)} first"
        return f"{name(best)}, the baseline, {first}{told}."
    baseline = next(row for row in ranking if row.is_baseline)
    if best.target is not None:
        return f"{score_words.first_there(best, baseline)}."
    told = f"{name(best)} is fastest: {_speed(best)} as fast as {name(baseline)}"
    if best.speedup_total and best.speedup_train:
        told += f" over all phases, {times_text(best.speedup_train)} in training alone"
    elif best.total_s is None:
        told += " by samples a second"
    if best.score and baseline.score:
        told += f", at {score_text(best)} against {number(baseline.score.median, 4)}"
    return told + "."


def _with_speedup(row: Summary) -> str:
    return f"{name(row)} ({'the baseline' if row.is_baseline else _speed(row)})"


def _speed(row: Summary) -> str:
    found = speedup_of(row)
    return times_text(found) if found else "no speed-up"


def _not_ranked(row: Summary) -> str:
    score = plain(row.score_name, LONGEST_NAME)
    reasons: dict[Doubt, str] = {
        "simulated": "its seats shared a device, so its speed is not that of real ones",
        "other work": f"it did other work ({row.doubts.get('other work')})",
        "score below baseline": f"its {score} is {row.doubts.get('score below baseline')}",
    }
    given = [reasons[doubt] for doubt in NOT_RANKED if doubt in row.doubts]
    if mostly_never(row):
        given.append(score_words.never(row))
    return f"{_with_speedup(row)} is not ranked: {'; '.join(given)}."


def _is_left_out(row: Summary) -> bool:
    # What was fast and too inaccurate has a sentence of its own, as has a baseline that was never there.
    if mostly_never(row):
        return not row.is_baseline
    return bool(set(NOT_RANKED) & set(row.doubts)) and not _is_price(row)


def _is_price(row: Summary) -> bool:
    others = set(NOT_RANKED) - {"score below baseline"}
    return not others & set(row.doubts) and score_words.has_price(row)


def _is_slower(row: Summary, baseline: Summary) -> bool:
    found = speedup_of(row)
    return found is not None and found.high < 1 and row.ways > baseline.ways


def _slower(row: Summary, baseline: Summary) -> str:
    parties = counted(row.seats, "seat") if row.seats > 1 else counted(row.ways, "device")
    return f"{name(row)}: {parties} are slower than {name(baseline)} here: {_speed(row)}{_why_slower(row, baseline)}."


def _why_slower(row: Summary, baseline: Summary) -> str:
    """The cost of sharing a step, where the figures show that it outweighs the step itself."""
    own, alone = _step_s(row), _step_s(baseline)
    alike = row.batch == baseline.batch and not {"other threads", "unstable"} & set(row.doubts)
    if own is None or alone is None or row.seats == 1 or not alike:
        return ""
    # Seats on a CPU share the cores that the baseline had alone; other devices bring their own.
    same_cores = row.device == baseline.device == "cpu"
    if own - (alone if same_cores else alone * baseline.ways / row.ways) < alone:
        return ""
    where = f", on the same {counted(row.threads, 'thread')}" if same_cores else ""
    return (
        f"; a step takes {seconds(own)} instead of {seconds(alone)}{where}: "
        "at this batch the network is too small to pay for the exchange of gradients"
    )


def _step_s(row: Summary) -> float | None:
    return row.train_s.median / row.steps if row.train_s and row.steps else None


def _trouble(row: Summary) -> str:
    counts = {outcome: row.outcomes[outcome] for outcome in _TROUBLE if outcome in row.outcomes}
    if len(counts) == 1 and not row.outcomes.get("done"):
        told = _TROUBLE[next(iter(counts))]
    else:
        told = listed([f"{_TROUBLE[outcome]} in {count} of {row.attempts} runs" for outcome, count in counts.items()])
    return f"{name(row)} {told}{_because(row.reason)}."


def _because(reason: str | None) -> str:
    words = plain(reason or "", LONGEST_REASON).rstrip(".")
    return f": {words}" if words else ""


def _disturbed(row: Summary) -> str:
    return f"{name(row)} has no times: no run of it was left undisturbed."
