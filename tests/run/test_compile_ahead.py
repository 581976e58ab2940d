from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch
from numbered import Numbers, numbered
from torch import Tensor

from escala.run import compile_ahead as ahead
from escala.run.compile_ahead import compile_ahead, compiled_since
from escala.run.group import Group
from escala.run.loop import Course, Desk
from escala.strategies.seating import share_of
from escala.terms.errors import Unfit


class Noting:
    """A learner that notes how many rows each step had, and when it was put back."""

    def __init__(self) -> None:
        self.did = list[object]()

    def step(self, inputs: Tensor, targets: Tensor, count: int, size: int) -> Tensor:
        self.did.append(size)
        return torch.zeros(())

    def compile_around(self) -> None:
        self.did.append("around")

    def snapshot(self) -> str:
        return "as it was"

    def restore(self, state: str) -> None:
        self.did.append(state)


def told(monkeypatch: pytest.MonkeyPatch, rows: int, graphs: int = 2, breaks: int = 0, *, lengths: bool = False):  # type: ignore[no-untyped-def]
    monkeypatch.setattr(ahead, "graphs", lambda: graphs)
    monkeypatch.setattr(ahead, "breaks", lambda: breaks)
    learner, marks = Noting(), list[int]()
    monkeypatch.setattr(ahead, "end_tuning", lambda: learner.did.append("no more tuning"))
    clock = iter((10.0, 12.5))
    desk = Desk(learner, Group(0, 1), lambda: next(clock), lambda: None, lambda _: None, marks.append)  # type: ignore[arg-type]
    source = numbered(rows)
    if lengths:
        wide = torch.arange(rows)[:, None].repeat(1, 40)
        source = replace(source, raw=wide, lengths=1 + torch.arange(rows) % 40)
    share = partial(share_of, (0, 10), 10)
    course = Course(source, None, None, Numbers().metrics, 10, share, seed=0, epochs=1, steps=None)
    notes = compile_ahead(desk, course)
    assert marks == list(range(1, len(learner.did) - 2))
    # The network alone first, and only then what surrounds it.
    assert learner.did[:2] == [min(10, rows), "around"]
    return learner.did[2:], notes


def test_every_shape_is_met_before_the_clock_starts_and_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    did, notes = told(monkeypatch, 53)
    assert did == [10, "no more tuning", 3, "as it was"]
    assert notes == {"compile": "2.5 s, 2 graphs"}


@pytest.mark.parametrize(("rows", "sizes"), [(50, [10]), (7, [7]), (10, [10]), (11, [10, 1])])
def test_one_shape_is_one_step(monkeypatch: pytest.MonkeyPatch, rows: int, sizes: list[int]) -> None:
    full, *short = sizes
    assert told(monkeypatch, rows, 1)[0] == [full, "no more tuning", *short, "as it was"]


def test_rows_of_many_lengths_show_two_widths(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, 53, lengths=True)[0] == [10, 10, "no more tuning", 3, "as it was"]


def test_what_could_not_be_followed_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, 50, 3, 1)[1] == {"compile": "2.5 s, 3 graphs, 1 place left uncompiled"}


def test_nothing_compiled_is_no_compiled_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unfit, match="could compile no part"):
        told(monkeypatch, 50, 0, 4)


def test_later_graphs_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "graphs", lambda: 5)
    assert compiled_since(5) == {}
    assert compiled_since(4) == {"compiled while training": "1 graph"}
