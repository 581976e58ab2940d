"""A checkpoint of any strategy and number of seats opens in any other, and a wrong one in none."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import kept
import numpy as np
import pytest
import torch

from escala.run.group import Group
from escala.run.keep import everybody, give_back
from escala.run.own import own_state, take_own_state
from escala.store.checkpoint import MODEL, name_of, open_checkpoint
from escala.terms.errors import EscalaError

pytestmark = pytest.mark.slow

Arrays = dict[str, np.ndarray]
SEATS = {pair: 1 if pair[0] == "layers" else pair[1] for pair in kept.SEATINGS}


def start(folder: Path, *turns: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, kept.__file__, str(folder), *turns])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("kept")
    most = max(seats for seats in SEATS.values())
    for phase in ("make", "take"):
        # Each process takes its seat in one strategy after another; nothing is taken before all are made.
        turns = [
            [f"{phase}:{name}:{ways}:{rank}" for name, ways in kept.SEATINGS if rank < SEATS[name, ways]]
            for rank in range(most)
        ]
        seated = [start(place, *mine) for mine in turns]
        assert [process.wait(240) for process in seated] == [0] * most
    return place


def seats_of(folder: Path, stem: str, name: str, ways: int, tail: str = "") -> list[Arrays]:
    return [dict(np.load(folder / f"{stem}-{name}-{ways}-{rank}{tail}.npz")) for rank in range(SEATS[name, ways])]


@pytest.mark.parametrize("source", kept.SEATINGS)
@pytest.mark.parametrize("target", kept.SEATINGS)
def test_weights_and_next_losses_are_those_of_the_maker(
    folder: Path, source: tuple[str, int], target: tuple[str, int]
) -> None:
    whole = seats_of(folder, "whole", *source)
    made = seats_of(folder, "kept", *source)[0]
    taken = seats_of(folder, "taken", *target, f"-from-{source[0]}-{source[1]}")
    losses = sum(seat["losses"] for seat in taken)
    assert len(losses) == kept.STEPS
    # The curve up to the checkpoint is in it; the next losses follow from what else is.
    np.testing.assert_allclose(losses, sum(seat["losses"] for seat in whole), rtol=1e-12)
    assert taken[0].keys() == {"steps", "sums", "losses"} | {f"{at} {name}" for at in ("at", "end") for name in made}
    for seat in taken:
        assert seat["steps"].tolist() == [6, 7, 8], "steps behind the checkpoint were made again"
        # Of a network in stages only rank 0 is told all weights.
        for name, value in made.items():
            if f"at {name}" in seat:
                np.testing.assert_array_equal(seat[f"at {name}"], value)
        for name, value in whole[0].items():
            if f"end {name}" in seat:
                np.testing.assert_allclose(seat[f"end {name}"], value, rtol=1e-11, atol=1e-13)
    assert not np.allclose(losses[5], losses[4], rtol=1e-6), "it does not learn, so it compares nothing"


@pytest.mark.parametrize("source", kept.SEATINGS)
def test_on_as_many_seats_it_goes_on_bit_for_bit(folder: Path, source: tuple[str, int]) -> None:
    whole = seats_of(folder, "whole", *source)
    taken = seats_of(folder, "taken", *source, f"-from-{source[0]}-{source[1]}")
    curve, expected = (sum(seat["losses"] for seat in seats) for seats in (taken, whole))
    # What was kept of more than two seats was added up in another order than is done here.
    np.testing.assert_array_max_ulp(curve[: kept.STOP], expected[: kept.STOP], 0 if source[1] <= 2 else 2)
    np.testing.assert_array_equal(curve[kept.STOP :], expected[kept.STOP :], strict=True)
    for name, value in whole[0].items():
        if name != "losses":
            np.testing.assert_array_equal(taken[0][f"end {name}"], value)


@pytest.mark.parametrize("source", kept.SEATINGS)
def test_names_are_the_persons_own(folder: Path, source: tuple[str, int]) -> None:
    import safetensors.torch

    place = folder / f"{source[0]}-{source[1]}" / name_of(kept.STOP)
    names = set(safetensors.torch.load(open_checkpoint(place).arrays(MODEL)))
    assert names == set(kept.Network().state_dict())
    assert "module.0.weight" in names
    meta = open_checkpoint(place).meta
    assert (meta.epoch, meta.done, meta.step, meta.seats) == (1, 1, 5, SEATS[source])


def test_rows_that_were_seen_are_not_read_again(folder: Path) -> None:
    job, learner, course = kept.seated("single", 1, 0, folder)
    begin = folder / "ddp-2" / name_of(kept.STOP)
    found = give_back(job, str(begin), learner, course, Group(0, 1))
    order = course.training.order(course.seed, 1, course.batch)
    # Rows behind us become what no network could make a loss of.
    course.training.targets[order[: kept.BATCH]] = 10**6
    steps = list[int]()
    kept.follow(kept.desk(learner, Group(0, 1), steps), course, 1, found.tally, found.place)
    assert steps == [6, 7, 8]


def test_another_network_is_refused_by_name(folder: Path) -> None:
    job, learner, course = kept.seated("single", 1, 0, folder, width=7)
    before = kept.weights(learner)
    with pytest.raises(EscalaError, match=r"CKPT-KEYS.*module\.0\.weight has the shape 6x784, not 7x784"):
        give_back(job, str(folder / "ddp-2" / name_of(kept.STOP)), learner, course, Group(0, 1))
    for name, value in kept.weights(learner).items():
        np.testing.assert_array_equal(value, before[name])


def test_rows_in_another_order_are_refused(folder: Path) -> None:
    job, learner, course = kept.seated("single", 1, 0, folder)
    other = kept.replace(course, seed=5)
    with pytest.raises(EscalaError, match="CKPT-ORDER"):
        give_back(job, str(folder / "single-1" / name_of(kept.STOP)), learner, other, Group(0, 1))


def test_own_statistics_and_random_numbers_return() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout(0.5))
    rows = torch.randn(8, 4)
    model(rows)
    state = own_state(model, ("cpu",))
    expected = model(rows)
    mean = model[1].running_mean.clone()
    torch.manual_seed(0)
    model[1].running_mean.zero_()
    take_own_state(model, state, ("cpu",))
    assert torch.equal(model(rows), expected)
    assert torch.equal(model[1].running_mean, mean)
    assert set(state) == {"random host", "buffer 1.running_mean", "buffer 1.running_var"}


class Two(Group):
    """One of two seats that are threads of this process."""

    def __init__(self, rank: int, table: list[torch.Tensor | None], edge: threading.Barrier) -> None:
        super().__init__(rank, 2)
        self._table, self._edge = table, edge

    def add_up(self, numbers: torch.Tensor) -> torch.Tensor:
        self._table[self.rank] = numbers.clone()
        self._edge.wait(10)
        summed = sum(part for part in self._table if part is not None)
        self._edge.wait(10)
        return numbers.copy_(summed)

    def gather(self, numbers: Sequence[float]) -> list[list[float]]:
        table = torch.zeros(2, len(numbers), dtype=torch.float64)
        table[self.rank] = torch.tensor(list(numbers), dtype=torch.float64)
        return self.add_up(table).tolist()


def test_seats_that_hold_other_layers_keep_what_is_their_own() -> None:
    own = (
        {"random host": torch.arange(7, dtype=torch.uint8), "buffer 0.running_mean": torch.rand(3)},
        {"random host": torch.arange(9, dtype=torch.uint8), "buffer last.running_var": torch.rand(2, 2).double()},
    )
    table, edge = [None, None], threading.Barrier(2)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda rank: everybody(Two(rank, table, edge), own[rank]), range(2)))
    expected = {f"seat {rank}/{name}": value for rank in range(2) for name, value in own[rank].items()}
    for seat in found:
        assert seat.keys() == expected.keys()
        for name, value in expected.items():
            assert seat[name].dtype == value.dtype
            assert torch.equal(seat[name], value)
