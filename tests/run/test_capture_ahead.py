"""Graphs are recorded before the clock starts, for every shape that the first epoch has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
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

    open = False

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


class Open(Noting):
    """Replays of which nobody has said how many steps go together; a step takes 2 ms of the clock."""

    open = True

    def __init__(self, now: list[float]) -> None:
        super().__init__()
        self.now = now
        self.followed = list[int]()
        self.settled: float | None = None

    def follow(self, batches: Iterator[Batch], mark: Callable[[int], None], first: int) -> None:
        assert self.settled is None
        sizes = [size for _, _, _, size in batches]
        assert set(sizes) == {10}, "a smaller batch tells little of a full one"
        self.followed.append(len(sizes))
        # The first time something is recorded, which takes long.
        self.now[0] += 0.002 * len(sizes) + (5.0 if len(self.followed) == 1 else 0.0)

    def settle(self, step_s: float) -> int:
        self.settled = step_s
        return 4


class Slower(Group):
    """Another seat takes twice as long."""

    def gather(self, numbers: object) -> list[list[float]]:
        own = [float(number) for number in numbers]  # type: ignore[attr-defined]
        return [own, [2 * number for number in own]]


def test_a_measurement_tells_how_many_steps_go_together() -> None:
    now, did = [10.0], list[str]()
    replays = Open(now)
    learner = SimpleNamespace(
        replays=replays, snapshot=lambda: did.append("kept"), restore=lambda _: did.append("put back")
    )
    desk = Desk(learner, Slower(0, 2), lambda: now[0], lambda: None, lambda _: None, lambda _: None)  # type: ignore[arg-type]
    share = partial(share_of, (0, 10), 10)
    course = Course(numbered(73), None, None, Numbers().metrics, 10, share, seed=0, epochs=1, steps=None)
    notes = capture_ahead(desk, course)
    assert replays.followed == [1, 7]
    assert replays.settled == pytest.approx(0.004)
    assert did == ["kept", "put back"]
    assert notes["capture"].endswith("2 graphs, up to 4 steps in one")


def test_graphs_that_were_recorded_later_are_told() -> None:
    _, desk, _ = told(53)
    assert captured_since(desk, 2) == {}
    assert captured_since(desk, 1) == {"captured while training": "1 graph"}
    plain = replace(desk, learner=SimpleNamespace(replays=None))  # type: ignore[arg-type]
    assert captured_since(plain, 0) == {}
