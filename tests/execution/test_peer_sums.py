"""Sums of gradients through each other's memory; seats are threads here, and devices stretches of memory."""

from __future__ import annotations

from contextlib import nullcontext
from unittest.mock import patch

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as some
from peer_node import Node
from torch import Tensor, nn

from escala.execution import peer_sums
from escala.execution.gradient_layout import up
from escala.execution.partial_sums import PARTS, in_parts
from escala.execution.peer_sums import PeerSums, room_of
from escala.execution.stretches import Stretch
from escala.terms.errors import EscalaError

STEPS = 3


def weights() -> list[nn.Parameter]:
    """Some fill whole lines of memory and some do not; one has channels last, some other formats."""
    shapes = [(4096,), (7,), (3, 5), (1,), (2000, 2)]
    found = [nn.Parameter(torch.empty(shape)) for shape in shapes]
    found.append(nn.Parameter(torch.empty(8, 3, 3, 3).to(memory_format=torch.channels_last)))
    found += [nn.Parameter(torch.empty(33, dtype=torch.float64)), nn.Parameter(torch.empty(40, dtype=torch.bfloat16))]
    return found


def largest_first(own: list[nn.Parameter]) -> list[nn.Parameter]:
    parts = sorted(in_parts(own, PARTS), key=lambda part: -sum(up(one.nbytes) for one in part))
    return [one for part in parts for one in part]


def summed(size: int) -> list[list[list[tuple[Tensor, Tensor]]]]:
    """By seat and step: each weight's gradient before and after."""
    node = Node(size)

    def seat(rank: int) -> list[list[tuple[Tensor, Tensor]]]:
        own, drawn = weights(), torch.Generator().manual_seed(rank)
        sums = PeerSums(own, rank, size, node.reach(rank))
        found = []
        for _ in range(STEPS):
            for weight in own:
                weight.grad = torch.empty_like(weight).copy_(torch.rand(weight.shape, generator=drawn))
            before = [one.grad.clone() for one in own if one.grad is not None]
            came = list[nn.Parameter]()
            for part in sums():
                if not isinstance(part, Stretch):
                    came += [weight for weight, gradient in part if gradient is weight.grad]
                elif part.last:
                    came.append(part.weight)
            assert [id(one) for one in came] == [id(one) for one in largest_first(own)]
            found.append([(one, weight.grad.clone()) for one, weight in zip(before, own, strict=True)])  # type: ignore[union-attr]
            assert [weight.grad.stride() for weight in own] == [one.stride() for one in before]  # type: ignore[union-attr]
        return found

    return node.run(seat)  # type: ignore[return-value]


@pytest.mark.parametrize("piece", [256, 2**20])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_all_seats_get_the_same_bits_and_they_are_the_sum(
    size: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peer_sums, "PIECE", piece)
    seats = summed(size)
    for step in range(STEPS):
        for number in range(len(weights())):
            after = [seat[step][number][1] for seat in seats]
            assert all(torch.equal(one, after[0]) for one in after)
            whole = sum(seat[step][number][0].double() for seat in seats)
            tolerance = {torch.bfloat16: 2e-2, torch.float32: 1e-6, torch.float64: 1e-14}[after[0].dtype]
            torch.testing.assert_close(after[0].double(), whole, rtol=tolerance, atol=0)


def trained(size: int, *, early: bool, passes: int) -> tuple[list[object], list[list[int]]]:
    """By seat: gradients of real passes; and how many parts were begun when the way back reached the first layer."""
    node = Node(size)
    begun: list[list[int]] = [[] for _ in range(size)]

    def seat(rank: int) -> list[Tensor]:
        drawn = torch.Generator().manual_seed(7)
        layers = [nn.Parameter(torch.rand(64, 64, generator=drawn) / 64) for _ in range(6)]
        sums = PeerSums(layers, rank, size, node.reach(rank), early=early)
        for _ in range(STEPS):
            for weight in layers:
                weight.grad = None
            for number in range(passes):
                inputs = torch.rand(3, 64, generator=torch.Generator().manual_seed(10 * rank + number))
                inputs.requires_grad_().register_hook(lambda _: begun[rank].append(len(sums._begun)))
                with nullcontext() if number + 1 == passes else sums.hold():
                    carried = inputs
                    for weight in layers:
                        carried = torch.tanh(carried @ weight)
                    carried.sum().backward()
            for _ in sums():
                pass
        return [weight.grad.clone() for weight in layers if weight.grad is not None]

    return node.run(seat), begun


@pytest.mark.parametrize("passes", [1, 3])
@pytest.mark.parametrize("size", [2, 3])
def test_sums_that_begin_during_the_way_back_are_those_that_begin_after_it(size: int, passes: int) -> None:
    late, none_begun = trained(size, early=False, passes=passes)
    early, begun = trained(size, early=True, passes=passes)
    for one, other in zip(late, early, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=0)
    assert {many for seat in none_begun for many in seat} == {0}
    # In a pass that another one adds to nothing is begun, in the last one all but what the first layer belongs to. In
    # the first step nothing is.
    parts = len(in_parts([nn.Parameter(torch.rand(64, 64)) for _ in range(6)], PARTS))
    assert parts > 2
    for seat in begun:
        assert seat == [0] * passes + ([0] * (passes - 1) + [parts - 1]) * (STEPS - 1)


@pytest.mark.parametrize("early", [False, True])
def test_a_large_weight_arrives_in_stretches(monkeypatch: pytest.MonkeyPatch, *, early: bool) -> None:
    monkeypatch.setattr(peer_sums, "PIECE", 4096)
    node = Node(2)

    def seat(rank: int) -> list[tuple[int, int]]:
        small, large = nn.Parameter(torch.ones(3)), nn.Parameter(torch.ones(5, 700))
        sums, found = PeerSums([small, large], rank, 2, node.reach(rank), early=early), list[tuple[int, int]]()
        small.grad, large.grad = torch.ones_like(small), torch.full_like(large, rank + 1.0)
        for part in sums():
            if isinstance(part, Stretch):
                assert part.weight is large
                assert part.gradient.view(-1)[part.elements].unique().tolist() == [3.0]
                found.append((part.elements.start, part.elements.stop))
        return found

    for found in node.run(seat):
        starts, stops = zip(*found, strict=True)  # type: ignore[call-overload]
        assert len(starts) == 3
        assert (starts[0], *stops) == (*starts, 3500)


def test_a_gradient_that_comes_in_pieces_is_told() -> None:
    one, other = nn.Parameter(torch.rand(2048)), nn.Parameter(torch.rand(2048))
    sums = PeerSums([one, other], 0, 1, Node(1).reach(0), early=True)
    (one.sum() + other.sum()).backward()
    sums()
    other.sum().backward()
    with pytest.raises(EscalaError, match=r"MODEL-GRADIENT.*\(2048,\) got one more"):
        (one.sum() + other.sum()).backward()


def test_an_early_part_that_never_comes_is_told() -> None:
    used, unused = nn.Parameter(torch.rand(3)), nn.Parameter(torch.rand(2))
    sums = PeerSums([used, unused], 0, 1, Node(1).reach(0), early=True)
    used.sum().backward()
    with pytest.raises(EscalaError, match=r"MODEL-UNUSED.*\(2,\)"):
        sums()


def test_what_cannot_be_added_up_is_told_before_anything_is_sent() -> None:
    node = Node(1)
    weight = nn.Parameter(torch.rand(3, 2))
    sums = PeerSums([weight], 0, 1, node.reach(0))
    assert sums.outside == room_of([weight], 1)
    with pytest.raises(EscalaError, match=r"MODEL-UNUSED.*\(3, 2\).*leave execution.transport out"):
        sums()
    nn.functional.embedding(torch.tensor([1]), weight, sparse=True).sum().backward()
    with pytest.raises(EscalaError, match=r"MODEL-SPARSE.*transport = shm cannot.*leave execution.transport out"):
        sums()


@settings(deadline=None)
@given(some.lists(some.integers(0, 3000), min_size=1, max_size=6), some.integers(1, 7), some.integers(64, 5000))
def test_pieces_tile_a_part_and_its_room_holds_them(counts: list[int], size: int, piece: int) -> None:
    part = [nn.Parameter(torch.zeros(count)) for count in counts]
    with patch.object(peer_sums, "PIECE", piece):
        room = room_of(part, size)
        areas = [torch.zeros(room, dtype=torch.uint8) for _ in range(size)]
        laid_out = [peer_sums._laid(part, areas, 0, rank) for rank in range(size)]
    for laid in laid_out:
        for one in laid.pieces:
            # Once as an addend or as what is given away, and once where others bring theirs.
            laid.whole[one.own] += 1
            for shard, there in one.given:
                laid.whole[shard] += 1
                there += 1
        if laid.stretches:
            assert [one.start for one in laid.stretches[1:]] == [one.stop for one in laid.stretches[:-1]]
            assert (laid.stretches[0].start, laid.stretches[-1].stop) == (0, counts[0])
            assert len(laid.stretches) == len(laid.pieces)
            assert all(one.start < one.stop for one in laid.stretches)
    for area in areas:
        # Nobody's stretch is another's, and all but what rounds shards up to whole lines is used.
        numbers = area.view(torch.float32)
        assert set(numbers.unique().tolist()) <= {0.0, 1.0}
        assert numbers.sum() * 4 >= room - 64 * (size + 1) * size * (1 + room // piece)
