from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from escala.execution.batchnorm import arrange, combine_running_statistics
from escala.execution.batchnorm_ghost import GhostNorm
from escala.terms.errors import EscalaError


def trained(rows: Tensor) -> nn.Sequential:
    """A network whose statistics are those of these rows alone."""
    model = nn.Sequential(nn.BatchNorm1d(3, momentum=1.0), nn.Linear(3, 2), nn.BatchNorm1d(2, momentum=1.0))
    with torch.no_grad():
        model[1].weight.fill_(0.5)
        model[1].bias.zero_()
    model(rows)
    return model


def combined(models: list[nn.Sequential], shares: list[float]) -> None:
    """As seats would do it: everybody's part is asked for first, then everybody gets the sum."""
    parts = list[Tensor]()

    def note(part: Tensor) -> Tensor:
        parts.append(part)
        return part

    for model, share in zip(models, shares, strict=True):
        before = {name: value.clone() for name, value in model.state_dict().items()}
        combine_running_statistics(model, share, note)
        model.load_state_dict(before)
    for model, share in zip(models, shares, strict=True):
        combine_running_statistics(model, share, lambda _: sum(parts, torch.zeros(())))


def test_two_unlike_shares_give_mean_and_variance_of_all_rows() -> None:
    rows = torch.randn(4000, 3, generator=torch.Generator().manual_seed(0)) * 3 + 1
    rows[1000:] += 5  # seats that see other rows have other means
    models = [trained(rows[:1000]), trained(rows[1000:])]
    combined(models, [0.25, 0.75])
    for model in models:
        assert model[0].running_mean.tolist() == pytest.approx(rows.mean(0).tolist(), rel=1e-4)
        assert model[0].running_var.tolist() == pytest.approx(rows.var(0).tolist(), rel=1e-2)
        assert (model[2].running_mean == models[0][2].running_mean).all()


def test_one_seat_keeps_what_it_has() -> None:
    model = trained(torch.randn(50, 3))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    combine_running_statistics(model, 1.0, lambda part: part)
    for name, value in model.state_dict().items():
        assert torch.allclose(value, before[name], rtol=1e-6), name


def test_a_network_without_statistics_asks_nobody() -> None:
    def fail(_: Tensor) -> Tensor:
        raise AssertionError("nothing is to be added up")

    combine_running_statistics(
        nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2, track_running_stats=False)), 1.0, fail
    )


def residual() -> nn.Module:
    """Layers below others, one of them used under two names."""
    shared = nn.BatchNorm1d(2)
    return nn.ModuleDict({"a": nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)), "b": shared, "c": shared})


def test_names_and_values_of_a_checkpoint_stay_the_same() -> None:
    model, plain = residual(), residual()
    before = dict(model.named_parameters())
    model, piece = arrange(model, "ghost:2", 2, 0)
    assert piece is not None
    assert model.state_dict().keys() == plain.state_dict().keys()
    # The optimiser may have been given them before.
    assert all(value is before[name] for name, value in model.named_parameters())
    model.load_state_dict(plain.state_dict())
    plain.load_state_dict(model.state_dict())
    assert isinstance(model["b"], GhostNorm)
    assert model["b"] is model["c"]
    assert not any(isinstance(layer, nn.BatchNorm1d) for layer in model.modules())


def test_a_network_that_is_one_layer_is_replaced_whole() -> None:
    model, piece = arrange(nn.BatchNorm1d(2), "ghost:2", 2, 0)
    assert isinstance(model, GhostNorm)
    assert model.piece is piece


def test_local_and_networks_without_such_layers_are_left_alone() -> None:
    model = residual()
    layers = list(model.modules())
    assert arrange(model, "local", 1, 0) == (model, None)
    assert list(model.modules()) == layers
    assert arrange(nn.Linear(2, 2), "ghost:2", 2, 0)[1] is None


def test_a_layer_with_a_way_of_its_own_is_refused_by_name() -> None:
    class Own(nn.BatchNorm1d):
        pass

    with pytest.raises(EscalaError, match=r"error\[MODEL-NORM\] 0: .*ghost:2 cannot stand in for a Own") as caught:
        arrange(nn.Sequential(Own(2)), "ghost:2", 2, 0)
    assert caught.value.exit == 3
