"""Graphs are recorded before the clock starts, for every shape that the first epoch has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from numbered import Numbers, numbered

from escala.execution.feed import Batch
from escala.run.capture_ahead import capture_ahead, captured_since
from escala.run.group import Group
from escala.run.loop import Course, Desk
from escala.strategies.seating import share_of
from escala.terms.events import TrialMoved


class Noting:
    """Replays that note the shapes they prepare."""

    def __init__(self) -> None:
        self.shapes = list[tuple[int, ...]]()

    @property
    def graphs(self) -> int:
        return len(self.shapes)

    def prepare(self, batch: Batch) -> None:
        self.shapes.append(tuple(batch[0].shape))


def told(
    rows: int, say: Callable[[TrialMoved], None] = lambda _: None, *, lengths: bool = False
) -> tuple[Noting, Desk, dict[str, str]]:
    replays, marks = Noting(), list[int]()
    clock = iter((10.0, 12.5))
    learner = SimpleNamespace(replays=replays)
    desk = Desk(learner, Group(0, 1), lambda: next(clock), lambda: None, say, marks.append)  # type: ignore[arg-type]
    source = numbered(rows)
    if lengths:
        wide = torch.arange(rows)[:, None].repeat(1, 40)
        source = replace(source, raw=wide, lengths=1 + torch.arange(rows) % 40)
    course = Course(
        source,
        None,
        None,
        Numbers().metrics,
        10,
        lambda size: share_of((0, 10), 10, size),
        seed=0,
        epochs=1,
        steps=None,
    )
    notes = capture_ahead(desk, course)
    assert marks == list(range(1, replays.graphs + 1))
    return replays, desk, notes


@pytest.mark.parametrize(("rows", "sizes"), [(50, [10]), (53, [10, 3]), (7, [7]), (11, [10, 1])])
def test_a_full_batch_and_a_last_one_that_is_smaller(rows: int, sizes: list[int]) -> None:
    said = list[str]()
    replays, _, notes = told(rows, lambda moved: said.append(moved.phase))
    assert [shape[0] for shape in replays.shapes] == sizes
    assert notes == {"capture": f"2.5 s, {len(sizes)} graph{'s' if len(sizes) > 1 else ''}"}
    assert said == ["capture"]


def test_every_width_of_rows_of_many_lengths_once() -> None:
    shapes = told(203, lengths=True)[0].shapes
    assert len(shapes) == len(set(shapes))
    assert {width for rows, width in shapes if rows == 10} == {8, 16, 24, 32, 40}
    assert [rows for rows, _ in shapes].count(3) == 1


def test_graphs_that_were_recorded_later_are_told() -> None:
    _, desk, _ = told(53)
    assert captured_since(desk, 2) == {}
    assert captured_since(desk, 1) == {"captured while training": "1 graph"}
    plain = replace(desk, learner=SimpleNamespace(replays=None))  # type: ignore[arg-type]
    assert captured_since(plain, 0) == {}
