from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from escala.run.halving import CLEARLY, Measured, search
from escala.terms.experiment import ExecutionSpec

PLAIN = ExecutionSpec()
CURVE = tuple(2.0 / step for step in range(1, 31))
FREE: dict[str, tuple[Any, ...]] = {"batchnorm": ("sync", "ghost:8"), "microbatch": (4,)}
"""Any keys will do: the search knows nothing of them."""


class Machine:
    """Runs take as long as they are asked to; speeds are products of what each key is worth."""

    def __init__(self, worth: dict[Any, float], losses: dict[Any, tuple[float, ...]] | None = None) -> None:
        self.now = 0.0
        self.worth = worth
        self.losses = losses or {}
        self.ran = list[tuple[ExecutionSpec, float]]()

    def clock(self) -> float:
        return self.now

    def measure(self, execution: ExecutionSpec, seconds: float) -> Measured:
        self.now += seconds
        self.ran.append((execution, seconds))
        keys = (execution.batchnorm, execution.microbatch)
        worth = [self.worth.get(key, 1.0) for key in keys]
        if 0.0 in worth:
            return Measured(reason="it does not run")
        curve = next((self.losses[key] for key in keys if key in self.losses), CURVE)
        return Measured(1000 * math.prod(worth), curve)


def found(machine: Machine, limit_s: float = 1000.0) -> Any:
    return search(PLAIN, FREE, machine.measure, machine.clock, limit_s)


def test_the_product_of_what_helps_is_found() -> None:
    machine = Machine({"sync": 1.1, "ghost:8": 1.3, 4: 1.2})
    best = found(machine)
    assert best.execution == replace(PLAIN, batchnorm="ghost:8", microbatch=4)
    assert not best.cut_short
    assert best.tried[0].execution == PLAIN


def test_what_is_hopeless_alone_is_not_tried_with_others() -> None:
    machine = Machine({"sync": 0.5, "ghost:8": 0.6, 4: 1.2})
    assert found(machine).execution == replace(PLAIN, microbatch=4)
    assert not [one for one, _ in machine.ran if one.batchnorm != "local" and one.microbatch == 4]


def test_the_plain_execution_stays_where_nothing_is_clearly_faster() -> None:
    assert found(Machine({"sync": CLEARLY - 0.01, 4: 1.0})).execution == PLAIN


def test_what_learns_something_else_is_not_chosen() -> None:
    other = (*CURVE[:5], CURVE[5] * 1.001, *CURVE[6:])
    best = found(Machine({"sync": 2.0, 4: 1.5}, {"sync": other}))
    assert best.execution == replace(PLAIN, microbatch=4)
    (refused,) = [one for one in best.tried if one.execution.batchnorm == "sync"]
    assert refused.reason == "its losses differ by 0.001 from the plain ones, more than 0.0001"
    assert refused.samples_per_second == 2000


def test_a_loss_that_is_no_number_is_never_the_same() -> None:
    best = found(Machine({"sync": 2.0}, {"sync": (math.nan,) * 30}))
    assert best.execution == PLAIN


def test_what_does_not_run_is_noted_and_not_tried_again() -> None:
    machine = Machine({"sync": 0.0, 4: 1.5})
    best = found(machine)
    assert best.execution == replace(PLAIN, microbatch=4)
    assert [one.reason for one in best.tried if one.execution.batchnorm == "sync"] == ["it does not run"]


def test_after_the_limit_no_run_begins_and_the_best_so_far_wins() -> None:
    machine = Machine({"sync": 1.1, "ghost:8": 1.3, 4: 1.2})
    best = found(machine, limit_s=2.5)
    # The plain run and two single changes; the third would have begun too late.
    assert len(machine.ran) == 3
    assert best.cut_short
    assert best.execution in {replace(PLAIN, batchnorm="ghost:8"), PLAIN, replace(PLAIN, batchnorm="sync")}


def test_without_a_plain_run_there_is_nothing_to_go_by() -> None:
    with pytest.raises(ValueError, match="it does not run"):
        found(Machine({"local": 0.0}))


@given(
    st.dictionaries(st.sampled_from(["sync", "ghost:8", 4]), st.floats(0.5, 3.0), min_size=3, max_size=3),
)
def test_where_changes_multiply_the_best_product_wins(worth: dict[Any, float]) -> None:
    best = found(Machine(worth))
    norm = max((1.0, "local"), (worth["sync"], "sync"), (worth["ghost:8"], "ghost:8"))
    # What is slower alone never belongs to the best product.
    rate = norm[0] * max(1.0, worth[4])
    machine = Machine(worth)
    chosen = machine.measure(best.execution, 1).samples_per_second
    assert chosen is not None
    assert chosen == pytest.approx(1000 * rate) or (rate < CLEARLY and best.execution == PLAIN)


def test_who_fell_out_on_a_short_run_does_not_come_back_for_it() -> None:
    """Short runs flatter: the two that go on are slower in their longer runs than the third was in its short one."""
    short = {
        ("local", None): 1000,
        ("sync", None): 1300,
        ("local", 4): 1500,
        ("sync", 4): 1400,
        ("ghost:8", None): 500,
    }
    longer = {("local", 4): 1200, ("sync", 4): 1250}

    class Moody(Machine):
        def measure(self, execution: ExecutionSpec, seconds: float) -> Measured:
            told = super().measure(execution, seconds)
            table = short if seconds == 1.0 else longer
            return replace(told, samples_per_second=float(table[execution.batchnorm, execution.microbatch]))

    assert found(Moody({})).execution == replace(PLAIN, batchnorm="sync", microbatch=4)


class Drawing(Machine):
    """A network that drops: timed runs all have losses of their own, and `curve` makes those that can be compared."""

    def __init__(self, worth: dict[Any, float], losses: dict[Any, tuple[float, ...]] | None = None) -> None:
        super().__init__(worth)
        self.curves = losses or {}
        self.compared = list[ExecutionSpec]()
        self.broken = set[ExecutionSpec]()

    def measure(self, execution: ExecutionSpec, seconds: float) -> Measured:
        drawn = tuple(2.0 / (step + len(self.ran)) for step in range(1, 31))
        return replace(super().measure(execution, seconds), losses=drawn)

    def curve(self, execution: ExecutionSpec) -> Measured:
        self.compared.append(execution)
        if execution in self.broken:
            return Measured(reason="it does not run")
        keys = (execution.batchnorm, execution.microbatch)
        return Measured(1.0, next((self.curves[key] for key in keys if key in self.curves), CURVE))

    def found(self, limit_s: float = 1000.0) -> Any:
        return search(PLAIN, FREE, self.measure, self.clock, limit_s, curve=self.curve)


OTHER = (*CURVE[:5], CURVE[5] * 1.001, *CURVE[6:])


def test_where_a_network_drops_only_the_winner_is_compared_in_a_run_of_its_own() -> None:
    machine = Drawing({"sync": 1.1, "ghost:8": 1.3, 4: 1.2})
    best = machine.found()
    assert best.execution == replace(PLAIN, batchnorm="ghost:8", microbatch=4)
    assert machine.compared == [PLAIN, best.execution]
    assert not [one for one in best.tried if one.reason]


def test_a_winner_that_learns_something_else_gives_way_to_the_next() -> None:
    machine = Drawing({"sync": 1.1, "ghost:8": 1.3, 4: 1.2}, {"ghost:8": OTHER})
    best = machine.found()
    assert best.execution == replace(PLAIN, batchnorm="sync", microbatch=4)
    refused = [one for one in best.tried if one.reason]
    assert {one.execution.batchnorm for one in refused} == {"ghost:8"}
    assert refused[0].reason == "its losses differ by 0.001 from the plain ones, more than 0.0001"


def test_where_everything_faster_learns_something_else_the_plain_execution_stays() -> None:
    machine = Drawing({"sync": 1.1, "ghost:8": 1.3, 4: 1.2}, {"ghost:8": OTHER, "sync": OTHER, 4: OTHER})
    assert machine.found().execution == PLAIN


def test_nothing_is_compared_where_nothing_is_clearly_faster() -> None:
    machine = Drawing({"sync": CLEARLY - 0.01, "ghost:8": 0.95, 4: 1.0})
    assert machine.found().execution == PLAIN
    assert not machine.compared


def test_without_the_plain_curve_nothing_can_be_compared_and_the_plain_execution_stays() -> None:
    machine = Drawing({"sync": 1.1, "ghost:8": 1.3, 4: 1.2})
    machine.broken = {PLAIN}
    best = machine.found()
    assert best.execution == PLAIN
    assert {one.reason for one in best.tried if one.execution == PLAIN} == {None, "it does not run"}
