from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from escala.execution.dropout_kernel import PackedDropout, with_dropout_kernel
from escala.run.probing import without_dropout
from escala.workloads.attention import Attend


def share_kept(p: float, *shape: int) -> tuple[float, Tensor]:
    torch.manual_seed(0)
    dropped = PackedDropout(p)(torch.ones(*shape, dtype=torch.float64))
    return (dropped != 0).double().mean().item(), dropped


@pytest.mark.parametrize("p", [0.1, 0.2, 0.5, 0.9, 1e-3])
def test_the_share_that_is_dropped_and_the_mean_that_stays(p: float) -> None:
    kept, dropped = share_kept(p, 1000, 1001)
    # Four standard deviations of a million draws.
    assert kept == pytest.approx(1 - p, abs=4 * (p * (1 - p) / 1e6) ** 0.5 + 1e-5)
    assert dropped.unique().tolist() == [0.0, pytest.approx(1 / (1 - p), rel=1e-4 / (1 - p))]
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(("p", "kept"), [(0.0, 1.0), (1.0, 0.0)])
def test_nothing_and_everything(p: float, kept: float) -> None:
    assert share_kept(p, 50, 3)[0] == kept


def test_of_a_share_just_below_one_something_stays_and_keeps_the_mean() -> None:
    _, dropped = share_kept(1 - 1e-7, 4000, 4096)
    assert dropped.max().item() == 2.0**16
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize("shape", [(1,), (3,), (5, 7), (2, 3, 5, 7), (0, 4)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    assert PackedDropout(0.5)(torch.ones(shape)).shape == shape


def test_places_and_rows_are_dropped_independently() -> None:
    torch.manual_seed(1)
    kept = (PackedDropout(0.5)(torch.ones(4000, 64)) != 0).double()
    alike = torch.corrcoef(kept.T).fill_diagonal_(0)
    # Of 2,016 pairs of places over 4,000 rows none beyond five standard deviations, and so for neighbouring rows.
    assert alike.abs().max().item() < 5 / 4000**0.5
    assert abs(torch.corrcoef(torch.stack([kept[:-1].flatten(), kept[1:].flatten()]))[0, 1].item()) < 0.01


def test_gradients_pass_where_values_do() -> None:
    torch.manual_seed(0)
    inputs = torch.randn(40, 30, requires_grad=True)
    outputs = PackedDropout(0.3)(inputs)
    outputs.sum().backward()
    assert inputs.grad is not None
    assert torch.allclose(inputs.grad * inputs, outputs)


def test_it_draws_from_torchs_generator_so_that_a_run_can_be_repeated_and_taken_up() -> None:
    layer, ones = PackedDropout(0.5), torch.ones(20, 20)
    torch.manual_seed(3)
    first, state = layer(ones), torch.get_rng_state()
    second = layer(ones)
    assert not torch.equal(first, second)
    torch.set_rng_state(state)
    assert torch.equal(layer(ones), second)


def test_nothing_is_dropped_or_drawn_where_nothing_is_trained() -> None:
    layer, ones = PackedDropout(0.5).eval(), torch.ones(20, 20)
    before = torch.get_rng_state()
    assert torch.equal(layer(ones), ones)
    assert torch.equal(torch.get_rng_state(), before)


def test_torchs_layers_are_exchanged_and_no_others() -> None:
    class Own(nn.Dropout):
        pass

    shared = nn.Dropout(0.25)
    given = nn.Sequential(shared, nn.Linear(2, 2), Own(0.5), nn.Dropout(0.0), Attend(0.5), shared).eval()
    model = with_dropout_kernel(given, "packed")
    assert [type(layer) for layer in model] == [PackedDropout, nn.Linear, Own, nn.Dropout, Attend, PackedDropout]
    assert model[0] is model[5]
    assert not model[0].training
    assert model[0].p == 0.25
    assert isinstance(with_dropout_kernel(nn.Dropout(0.5), "packed"), PackedDropout)


def test_what_is_left_alone_stays_as_it_is() -> None:
    given = nn.Sequential(nn.Dropout(0.25))
    assert with_dropout_kernel(given, "default") is given
    assert isinstance(given[0], nn.Dropout)
    # Short runs that are compared by their losses have every share at 0 before anything is exchanged.
    assert isinstance(with_dropout_kernel(without_dropout(given), "packed")[0], nn.Dropout)


def test_a_narrow_format_stays_narrow() -> None:
    assert PackedDropout(0.5)(torch.ones(4, 4, dtype=torch.bfloat16)).dtype is torch.bfloat16
