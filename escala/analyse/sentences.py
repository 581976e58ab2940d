"""What a block of rows shows, in plain words. Nothing is said that its figures do not show."""

from __future__ import annotations

from collections.abc import Sequence

from escala.analyse import energy_words, score_words
from escala.analyse.compare import NOT_RANKED, baseline_of, ranked, rivals
from escala.analyse.language import marked, say
from escala.analyse.parity import beyond
from escala.analyse.plain import LONGEST_NAME, plain, reason_text
from escala.analyse.row import Summary
from escala.analyse.to_score import mostly_never
from escala.analyse.wording import (
    counted,
    listed,
    name,
    number,
    score_name,
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
    "unfit": marked("did not fit"),
    "out of memory": marked("ran out of memory"),
    "diverged": marked("diverged"),
    "failed": marked("failed"),
}
_NO_BASELINE = marked("The baseline {row} has no times here, so nothing is compared and no winner is named.")
_BY_RATE = marked("By its median {row} makes most samples a second, {rate}; the next is {next} with {other}.")
_TOO_FEW_THERE = marked("Too few rows came to {target} to be ranked, so no winner is named.")
_TOO_FEW_ALIKE = marked("Too few rows did the same work on real devices to be ranked, so no winner is named.")
_CLOSE = marked("{rows} cannot be told apart: their intervals overlap, so no winner is named.")
_CHANCE = marked(
    "{row} is fastest by its median, but fewer than {enough} runs of a row may show chance, so no winner is named."
)
_SMALL = marked(
    "{told}; a step takes {time} instead of {other}: at this batch the network is too small to pay for {exchange}"
)
_SMALL_SAME_THREADS = marked(
    "{told}; a step takes {time} instead of {other}, on the same {threads}: at this batch the network is too small "
    "to pay for {exchange}"
)
_GRADIENTS = marked("the exchange of gradients")
_OUTPUTS = marked("what its parts exchange on the way there and back")


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
        return say("Nothing could be timed here.")
    baseline = baseline_of(block)
    if baseline is None:
        return _without_baseline(block)
    if baseline is not None and mostly_never(baseline):
        return score_words.no_rank_without(baseline, block)
    if len(measured) == 1:
        row = name(measured[0])
        return say("Only {row} was timed here, so there is nothing to compare it with.", row=row)
    if len(ranking) < 2:
        if any(mostly_never(row) for row in measured):
            return say(_TOO_FEW_THERE, target=target_text(baseline))
        return say(_TOO_FEW_ALIKE)
    if close := rivals(ranking):
        rows = listed([_with_speedup(row) for row in (ranking[0], *close)])
        return say(_CLOSE, rows=rows)
    if winner_of(block) is None:
        return say(_CHANCE, row=_with_speedup(ranking[0]), enough=ENOUGH_TO_WIN)
    return _winner(ranking)


def _without_baseline(block: Sequence[Summary]) -> str:
    told = say(_NO_BASELINE, row=plain(block[0].baseline, LONGEST_NAME))
    able = [row for row in block if not set(NOT_RANKED) & set(row.doubts)]
    rates = [(row.samples_per_second.median, name(row)) for row in able if row.samples_per_second]
    if len(rates) < 2:
        return told
    (most, first), (less, second), *_ = sorted(rates, reverse=True)
    return f"{told} {say(_BY_RATE, row=first, rate=number(most), next=second, other=number(less))}"


def _winner(ranking: Sequence[Summary]) -> str:
    best, second = ranking[0], ranking[1]
    if best.is_baseline:
        told = _first(best)
        # A row with more devices that is slower gets a sentence of its own.
        if not _is_slower(second, best):
            told = say("{told}; the next is {row}", told=told, row=_with_speedup(second))
        return f"{told}."
    baseline = next(row for row in ranking if row.is_baseline)
    if best.target is not None:
        return score_words.first_there(best, baseline)
    speed, other = score_words.speed_text(best), name(baseline)
    told = say("{row} is fastest: {times} as fast as {baseline}", row=name(best), times=speed, baseline=other)
    if best.speedup_total and best.speedup_train:
        training = times_text(best.speedup_train)
        told = say("{told} over all phases, {training} in training alone", told=told, training=training)
    elif best.total_s is None:
        told = say("{told} by samples a second", told=told)
    if best.score and baseline.score:
        own, other = score_text(best), number(baseline.score.median, 4)
        told = say("{told}, at {one} against {other}", told=told, one=own, other=other)
    return f"{told}."


def _first(baseline: Summary) -> str:
    if baseline.target is None:
        return say("{row}, the baseline, is fastest", row=name(baseline))
    return say("{row}, the baseline, came to {target} first", row=name(baseline), target=target_text(baseline))


def _with_speedup(row: Summary) -> str:
    return f"{name(row)} ({say('the baseline') if row.is_baseline else score_words.speed_text(row)})"


def _not_ranked(row: Summary) -> str:
    told = row.doubts
    reasons: dict[Doubt, str] = {
        "simulated": say("its seats shared a device, so its speed is not that of real ones"),
        "other work": say("it did other work ({reason})", reason=told.get("other work")),
        "score below baseline": say(
            "its {score} is {reason}", score=score_name(row.score_name), reason=told.get("score below baseline")
        ),
    }
    given = [reasons[doubt] for doubt in NOT_RANKED if doubt in row.doubts]
    if mostly_never(row):
        given.append(score_words.never(row))
    return say("{row} is not ranked: {reasons}.", row=_with_speedup(row), reasons="; ".join(given))


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
    told = say(
        "{row}: {parties} are slower than {baseline} here: {times}",
        row=name(row),
        parties=parties,
        baseline=name(baseline),
        times=score_words.speed_text(row),
    )
    return f"{_with_reason(told, row, baseline)}."


def _with_reason(told: str, row: Summary, baseline: Summary) -> str:
    """The cost of sharing a step, where the figures show that it outweighs the step itself."""
    own, alone = _step_s(row), _step_s(baseline)
    alike = row.batch == baseline.batch and not {"other threads", "unstable"} & set(row.doubts)
    if own is None or alone is None or row.seats == 1 or not alike:
        return told
    # Seats on a CPU share the cores that the baseline had alone; other devices bring their own.
    same_cores = row.device == baseline.device == "cpu"
    if own - (alone if same_cores else alone * baseline.ways / row.ways) < alone:
        return told
    # Seats that are given the same rows have parts of the network.
    exchange = say(_OUTPUTS if sum(row.seat_batch) > row.batch else _GRADIENTS)
    if same_cores:
        threads = counted(row.threads, "thread")
        return say(
            _SMALL_SAME_THREADS,
            told=told,
            time=seconds(own),
            other=seconds(alone),
            threads=threads,
            exchange=exchange,
        )
    return say(_SMALL, told=told, time=seconds(own), other=seconds(alone), exchange=exchange)


def _step_s(row: Summary) -> float | None:
    return row.train_s.median / row.steps if row.train_s and row.steps else None


def _trouble(row: Summary) -> str:
    counts = {outcome: row.outcomes[outcome] for outcome in _TROUBLE if outcome in row.outcomes}
    if len(counts) == 1 and not row.outcomes.get("done"):
        told = say(_TROUBLE[next(iter(counts))])
    else:
        told = listed([_in_some(outcome, count, row.attempts) for outcome, count in counts.items()])
    return f"{name(row)} {told}{_because(row.reason)}."


def _in_some(outcome: str, count: int, attempts: int) -> str:
    return say("{what} in {count} of {attempts} runs", what=say(_TROUBLE[outcome]), count=count, attempts=attempts)


def _because(reason: str | None) -> str:
    words = reason_text(reason).rstrip(".")
    return f": {words}" if words else ""


def _disturbed(row: Summary) -> str:
    return say("{row} has no times: no run of it was left undisturbed.", row=name(row))
