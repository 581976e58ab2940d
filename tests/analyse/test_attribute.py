"""Where a speed-up came from: planted factors are found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, combinations, pairwise
from math import exp, log, prod

import pytest
import recorded as made
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from escala.analyse.attribute import Attribution, attributions
from escala.analyse.summary import summarise
from escala.terms.record import Record

PLANTED = {"devices": 3.1, "precision": 1.7, "batch": 0.9, "feed": 1.25, "compile": 1.4}
TARGET = "target"
RUNS = (1.0, 1.01, 0.99, 1.005, 0.995)


def subsets(names: Iterable[str]) -> list[frozenset[str]]:
    known = list(names)
    return [frozenset(some) for some in chain.from_iterable(combinations(known, n) for n in range(len(known) + 1))]


def row(taken: frozenset[str], of: dict[str, float], runs: Sequence[float], time_s: float) -> list[Record]:
    """The runs of one mixture, each `time_s` long in all, but for the noise of `runs`."""
    label = "base" if not taken else TARGET if taken == of.keys() else f"with {', '.join(sorted(taken))}"
    ways = 4 if "devices" in taken else 1
    records = made.repeats(
        label,
        [time_s * noise for noise in runs],
        ways=ways,
        device="cuda",
        host=made.GPUS,
        strategy="ddp" if ways > 1 else "single",
        batch=256 if "batch" in taken else 64,
        validation_s=None,
        test_s=None,
    )
    keys: dict[str, object] = {}
    keys |= {"precision": "bf16"} if "precision" in taken else {}
    keys |= {"feed": "host", "workers": 2} if "feed" in taken else {}
    keys |= {"compile": True} if "compile" in taken else {}
    return [replace(one, trial=replace(one.trial, execution=replace(one.trial.execution, **keys))) for one in records]


def campaign(
    of: dict[str, float],
    runs: Sequence[float] = RUNS,
    *,
    only: Sequence[frozenset[str]] | None = None,
    together: float = 1.0,
) -> list[Record]:
    found: list[Record] = []
    for taken in subsets(of) if only is None else only:
        speed = prod(of[name] for name in taken) * (together if {"devices", "precision"} <= taken else 1.0)
        found += row(taken, of, runs, 60.0 / speed)
    return found


def taken_apart(records: Sequence[Record]) -> Attribution:
    (found,) = attributions(records, summarise(records, "base"), TARGET)
    return found


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_planted_factors_are_found_exactly(count: int) -> None:
    of = dict(list(PLANTED.items())[:count])
    found = taken_apart(campaign(of))
    assert {factor.name: factor.speedup.median for factor in found.factors} == pytest.approx(of, rel=1e-9)
    assert found.total is not None
    whole = prod(of.values())
    assert found.total.median == pytest.approx(whole, rel=1e-9)
    shares = {factor.name: factor.share.median for factor in found.factors if factor.share}
    assert shares == pytest.approx({name: log(one) / log(whole) for name, one in of.items()}, rel=1e-9)
    assert sum(shares.values()) == pytest.approx(1)
    assert all(pair.speedup.median == pytest.approx(1.0, rel=1e-9) for pair in found.interactions)
    assert len(found.interactions) == count * (count - 1) // 2


@given(
    st.fixed_dictionaries(
        {name: st.floats(min_value=0.3, max_value=5) for name in ("devices", "precision", "batch")}
    ),
    st.floats(min_value=0.5, max_value=2),
)
@settings(max_examples=15, deadline=None)
def test_what_two_factors_do_together_is_shared_by_both_and_shown(of: dict[str, float], together: float) -> None:
    found = taken_apart(campaign(of, (1.0,), together=together))
    wanted = {name: one * (together**0.5 if name != "batch" else 1.0) for name, one in of.items()}
    assert {factor.name: factor.speedup.median for factor in found.factors} == pytest.approx(wanted, rel=1e-6)
    pairs = {(pair.one, pair.other): pair.speedup.median for pair in found.interactions}
    assert pairs["devices", "precision"] == pytest.approx(together, rel=1e-6)
    assert pairs["precision", "batch"] == pytest.approx(1.0, rel=1e-6)


def test_intervals_hold_the_planted_factors_and_show_the_noise() -> None:
    for factor in taken_apart(campaign(PLANTED)).factors:
        assert factor.speedup.low <= PLANTED[factor.name] <= factor.speedup.high
        assert 1.0 < factor.speedup.high / factor.speedup.low < 1.02
    exact = taken_apart(campaign(PLANTED, (1.0,) * 5)).factors[0].speedup
    assert exact.high == pytest.approx(exact.low)


def test_the_waterfall_goes_from_one_to_the_whole() -> None:
    bars = taken_apart(campaign(PLANTED)).waterfall
    assert [bar.name for bar in bars] == list(PLANTED)
    assert bars[0].begin == 1.0
    assert all(one.end == other.begin for one, other in pairwise(bars))
    assert bars[-1].end == pytest.approx(prod(PLANTED.values()))


def test_a_ladder_divides_by_its_one_order() -> None:
    of = {"devices": 3.0, "precision": 2.0, "batch": 1.5}
    ladder = [frozenset(list(of)[:count]) for count in range(4)]
    found = taken_apart(campaign(of, only=ladder, together=2.0))
    assert (found.orders, found.possible, found.interactions) == (1, 6, ())
    assert {factor.name: factor.speedup.median for factor in found.factors} == pytest.approx(
        {"devices": 3.0, "precision": 4.0, "batch": 1.5}
    )


def test_a_mixture_that_did_not_fit_leaves_the_orders_that_go_round_it() -> None:
    of = {"devices": 3.0, "precision": 2.0, "batch": 1.5}
    lost = frozenset({"batch"})
    records = campaign(of, only=[one for one in subsets(of) if one != lost])
    failed = [replace(one, outcome="out of memory", reason="40 GiB", phases=None) for one in row(lost, of, RUNS, 1.0)]
    found = taken_apart([*records, *failed])
    assert (found.orders, found.missing) == (4, ("with batch: out of memory: 40 GiB",))
    assert found.total is not None
    assert found.total.median == pytest.approx(9.0)


def test_without_an_order_nothing_is_taken_apart_and_the_reason_is_told() -> None:
    of = {"devices": 3.0, "precision": 2.0}
    found = taken_apart(campaign(of, only=[frozenset(), frozenset(of)]))
    assert (found.total, found.factors) == (None, ())
    assert found.reason is not None
    assert "--attribute" in found.reason


def test_a_whole_that_is_no_speed_up_has_no_shares() -> None:
    found = taken_apart(campaign({"devices": 2.0, "precision": 0.4}))
    assert [factor.share for factor in found.factors] == [None, None]
    assert found.total is not None
    assert found.total.median == pytest.approx(exp(log(0.8)))


def test_two_runs_of_a_row_are_too_few_for_shares() -> None:
    found = taken_apart(campaign({"devices": 3.0, "precision": 2.0}, (1.0, 1.0)))
    assert [factor.share for factor in found.factors] == [None, None]
    assert found.factors[0].speedup.median == pytest.approx(3.0)


def test_rows_that_are_no_mixture_do_not_count() -> None:
    of = {"devices": 3.0, "precision": 2.0}
    other = made.repeats("other", RUNS, ways=2, device="cuda", host=made.GPUS, strategy="ddp")
    assert taken_apart([*campaign(of), *other]).factors == taken_apart(campaign(of)).factors


def test_a_campaign_without_the_target_has_nothing_to_take_apart() -> None:
    records = campaign({"devices": 3.0}, only=[frozenset()])
    assert attributions(records, summarise(records, "base"), TARGET) == ()


def test_a_budget_of_steps_is_taken_apart_by_its_rate() -> None:
    base = made.repeats("base", RUNS, steps=100, batch=64, strategy="single")
    target = made.repeats(TARGET, [time * 2 for time in RUNS], steps=100, batch=256, strategy="single")
    (factor,) = taken_apart([*base, *target]).factors
    assert (factor.name, factor.speedup.median) == ("batch", pytest.approx(2.0))
