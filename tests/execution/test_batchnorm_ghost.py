"""Virtual batches of a fixed size: the same for any number of seats, and for any microbatch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from escala.execution.batchnorm import arrange, combine_running_statistics
from escala.execution.blocks import sizes
from escala.execution.piece import Piece
from escala.strategies.seating import divide, pieces, share_of

UNIT = 4
BATCH = 24


def network() -> nn.Sequential:
    """Two layers of statistics, so that the second sees what the first made of the rows."""
    generator = torch.Generator().manual_seed(1)
    model = nn.Sequential(nn.Linear(5, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2), nn.BatchNorm1d(2)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return model


def batches(*rows: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(many, 5, generator=generator, dtype=torch.float64) for many in rows]


class Seats:
    """Seats that share every batch, one after the other in this process."""

    def __init__(self, ways: int, microbatch: int = BATCH, make: Callable[[], nn.Module] = network) -> None:
        arranged = [arrange(make(), f"ghost:{UNIT}", UNIT, rank) for rank in range(ways)]
        self.models = [model for model, _ in arranged]
        self.told = [piece for _, piece in arranged]
        self.rows = divide(BATCH, ways, UNIT)
        self.microbatch = microbatch

    def step(self, inputs: Tensor) -> Tensor:
        """Outputs of the whole batch; gradients of all seats gather in the first."""
        outputs = []
        for model, told, rows in zip(self.models, self.told, self.rows, strict=True):
            assert isinstance(told, Piece)
            own = inputs[share_of(rows, BATCH, len(inputs), UNIT)]
            cuts = pieces(len(own), self.microbatch, UNIT)
            if not cuts:
                told.begin(0, len(inputs))
                (model(inputs[:1]).sum() * 0).backward()
            for number, cut in enumerate(cuts):
                told.begin(cut.stop - cut.start, len(inputs), first=number == 0)
                outputs.append(model(own[cut]))
                outputs[-1].square().sum().backward()
        return torch.cat(outputs).detach()

    def settle(self) -> None:
        parts = list[Tensor]()

        def note(part: Tensor) -> Tensor:
            parts.append(part)
            return part

        # Everybody's part is asked for first, of a copy, then everybody gets the sum.
        for model in copy.deepcopy(self.models):
            combine_running_statistics(model, 0.0, note)
        for model in self.models:
            combine_running_statistics(model, 0.0, lambda _: sum(parts, torch.zeros(())))

    def gradients(self) -> list[Tensor]:
        return [
            sum((part.grad for part in parts), torch.zeros(()))  # type: ignore[misc]
            for parts in zip(*(model.parameters() for model in self.models), strict=True)
        ]


def by_hand(inputs: Sequence[Tensor]) -> tuple[Tensor, dict[str, Tensor]]:
    """Outputs of the last batch and running statistics, by torch's own layers on one ghost at a time."""
    model = network()
    running = {
        index: (torch.zeros(size, dtype=torch.float64), torch.ones(size, dtype=torch.float64))
        for index, size in ((1, 3), (4, 2))
    }
    outputs = list[Tensor]()
    for rows in inputs:
        outputs = []
        sums = {index: (torch.zeros_like(mean), torch.zeros_like(mean)) for index, (mean, _) in running.items()}
        for ghost in rows.split(sizes(len(rows), UNIT)):
            values = ghost
            for index, layer in enumerate(model):
                if index in running:
                    sums[index][0].add_(values.detach().mean(0), alpha=len(ghost) / len(rows))
                    sums[index][1].add_(values.detach().var(0), alpha=len(ghost) / len(rows))
                values = layer(values)
            outputs.append(values.detach())
        for index, (mean, variance) in running.items():
            mean.mul_(0.9).add_(sums[index][0], alpha=0.1)
            variance.mul_(0.9).add_(sums[index][1], alpha=0.1)
    named = {f"{index}.running_mean": mean for index, (mean, _) in running.items()}
    named |= {f"{index}.running_var": variance for index, (_, variance) in running.items()}
    return torch.cat(outputs), named


def check_same(seats: Seats, single: Seats) -> None:
    for found, expected in zip(seats.gradients(), single.gradients(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)
    for model in seats.models:
        for name, value in single.models[0].state_dict().items():
            torch.testing.assert_close(model.state_dict()[name], value, rtol=1e-12, atol=1e-12, msg=name)


def test_each_ghost_is_what_torch_makes_of_it_and_a_step_moves_the_statistics_once() -> None:
    inputs = batches(24, 13, 24, 6, 2)
    seats = Seats(1)
    for rows in inputs:
        outputs = seats.step(rows)
    expected, running = by_hand(inputs)
    torch.testing.assert_close(outputs, expected, rtol=1e-12, atol=1e-12)
    seats.settle()
    state = seats.models[0].state_dict()
    for name, value in running.items():
        torch.testing.assert_close(state[name], value, rtol=1e-12, atol=1e-12, msg=name)
    assert state["1.num_batches_tracked"] == len(inputs)


@pytest.mark.parametrize(("ways", "microbatch"), [(1, 4), (1, 10), (2, 24), (2, 4), (3, 24), (3, 8), (6, 24)])
def test_any_number_of_seats_and_any_microbatch_give_the_same(ways: int, microbatch: int) -> None:
    """Batches whose last ghost is short, whose last row is lone, and that leave seats without rows."""
    single, seats = Seats(1), Seats(ways, microbatch)
    for number, inputs in enumerate(batches(24, 23, 17, 9, 5, 3, 24)):
        expected = single.step(inputs)
        torch.testing.assert_close(seats.step(inputs), expected, rtol=1e-12, atol=1e-12)
        if number == 3:
            # What is settled on the way, as before a validation, changes nothing later.
            seats.settle()
    single.settle()
    seats.settle()
    check_same(seats, single)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(2, BATCH), min_size=1, max_size=4), st.integers(1, 6), st.integers(1, BATCH))
def test_no_row_is_lost_between_seats_and_pieces(rows: list[int], ways: int, microbatch: int) -> None:
    single, seats = Seats(1), Seats(ways, microbatch)
    for inputs in batches(*rows):
        torch.testing.assert_close(seats.step(inputs), single.step(inputs), rtol=1e-11, atol=1e-11)
    single.settle()
    seats.settle()
    check_same(seats, single)


def test_images_of_one_row_have_a_variance_and_plain_rows_do_not() -> None:
    seats = Seats(1, make=lambda: nn.Sequential(nn.BatchNorm2d(3)))
    torch.testing.assert_close(
        seats.step(torch.randn(1, 3, 4, 4)).mean((0, 2, 3)), torch.zeros(3), rtol=0.0, atol=1e-6
    )
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        Seats(1).step(batches(1)[0])


def test_without_a_momentum_statistics_are_the_mean_over_steps() -> None:
    def make() -> nn.Module:
        return nn.Sequential(nn.BatchNorm1d(5, momentum=None).double())

    seats = Seats(2, make=make)
    inputs = batches(24, 24, 24)
    for rows in inputs:
        seats.step(rows)
    seats.settle()
    for model in seats.models:
        torch.testing.assert_close(
            model.state_dict()["0.running_mean"], torch.cat(inputs).mean(0), rtol=1e-12, atol=1e-12
        )


def test_layers_without_statistics_or_weights_work_too() -> None:
    def make() -> nn.Module:
        return nn.Sequential(
            nn.BatchNorm1d(5, track_running_stats=False, affine=False).double(), nn.Linear(5, 1).double()
        )

    seats, single = Seats(3, make=make), Seats(1, make=make)
    for other in seats.models:
        other.load_state_dict(single.models[0].state_dict())
    for rows in batches(24, 5):
        torch.testing.assert_close(seats.step(rows), single.step(rows), rtol=1e-12, atol=1e-12)
    seats.settle()


def test_a_loaded_state_is_as_if_nothing_had_run() -> None:
    before, inputs = batches(24, 24, 11), batches(24, 13, 7)
    fresh, warmed = Seats(2), Seats(2)
    states = [copy.deepcopy(model.state_dict()) for model in warmed.models]
    for rows in before:
        warmed.step(rows)
    for model, state in zip(warmed.models, states, strict=True):
        model.load_state_dict(state)
        model.zero_grad()
    for rows in inputs:
        assert torch.equal(warmed.step(rows), fresh.step(rows))
    warmed.settle()
    fresh.settle()
    for one, other in zip(warmed.models, fresh.models, strict=True):
        for name, value in other.state_dict().items():
            assert torch.equal(one.state_dict()[name], value), name


def test_a_state_from_the_middle_goes_on_with_any_number_of_seats() -> None:
    first, second = batches(24, 24, 11), batches(24, 13, 7)
    through, begun, resumed = Seats(1), Seats(2), Seats(3)
    for rows in first:
        through.step(rows)
        begun.step(rows)
    begun.settle()
    for model in resumed.models:
        model.load_state_dict(begun.models[0].state_dict())
    for rows in second:
        through.step(rows)
        resumed.step(rows)
    through.settle()
    resumed.settle()
    for name, value in through.models[0].state_dict().items():
        torch.testing.assert_close(resumed.models[2].state_dict()[name], value, rtol=1e-12, atol=1e-12, msg=name)


def test_no_checkpoint_without_the_statistics_of_all_seats() -> None:
    seats = Seats(2)
    seats.models[0].state_dict()
    seats.step(batches(24)[0])
    with pytest.raises(RuntimeError, match="before the seats had combined"):
        seats.models[0].state_dict()
    seats.settle()
    seats.models[0].state_dict()


def test_a_layer_used_twice_in_a_pass_is_refused() -> None:
    shared = nn.BatchNorm1d(5)
    seats = Seats(1, make=lambda: nn.Sequential(shared, shared).double())
    with pytest.raises(RuntimeError, match="used twice"):
        seats.step(batches(24)[0])


def test_evaluation_is_that_of_torch() -> None:
    model, _ = arrange(network(), "ghost:4", 4, 0)
    rows = batches(7)[0]
    assert torch.equal(model.eval()(rows), network().eval()(rows))


def test_under_autocast_statistics_keep_their_precision() -> None:
    seats = Seats(1, make=lambda: nn.Sequential(nn.BatchNorm2d(3)))
    rows = torch.randn(24, 3, 6, 6).add_(3).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        assert seats.step(rows).dtype == torch.bfloat16
    seats.settle()
    mean = seats.models[0].state_dict()["0.running_mean"]
    torch.testing.assert_close(mean, 0.1 * rows.float().mean((0, 2, 3)), rtol=1e-5, atol=1e-6)
