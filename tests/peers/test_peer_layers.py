from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from escala.peers.layers import Activation, Convolution, Dense, Dropout, Flatten, MaxPool, peers_unfit, translated
from escala.terms.errors import Unfit
from escala.workloads import workload
from escala.workloads.base import Workload

TRANSLATED = {"keras", "jax"}


def shared() -> nn.Module:
    layer = nn.Linear(4, 4)
    return nn.Sequential(layer, nn.ReLU(), layer)


def frozen() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4).requires_grad_(False))


class Own(nn.Linear):
    """A layer whose forward could be anything."""


def test_layers_come_with_their_weights() -> None:
    inner = nn.Sequential(nn.Linear(12, 5, bias=False), nn.Sigmoid())
    model = nn.Sequential(
        nn.Conv2d(1, 3, (3, 2), stride=2, padding=(1, 0)),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Dropout(0.4),
        inner,
    )
    convolution, relu, pool, flatten, dropout, dense, sigmoid = translated(model)
    assert isinstance(convolution, Convolution)
    assert (convolution.weight.shape, convolution.stride, convolution.padding) == ((3, 1, 3, 2), (2, 2), (1, 0))
    assert (relu, pool, flatten, dropout, sigmoid) == (
        Activation("relu"), MaxPool((2, 2), (2, 2)), Flatten(), Dropout(0.4), Activation("sigmoid"),
    )  # fmt: skip
    assert isinstance(dense, Dense)
    assert dense.bias is None
    before = dense.weight.copy()
    np.testing.assert_array_equal(before, inner[0].weight.detach().numpy())
    with torch.no_grad():
        inner[0].weight.zero_()
    np.testing.assert_array_equal(dense.weight, before, "it must be a copy")


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: nn.Linear(4, 4), "its network is a Linear"),
        (lambda: nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)), "its layer 1 is a BatchNorm1d"),
        (lambda: nn.Sequential(nn.Sequential(nn.GELU())), "its layer 0.0 is a GELU"),
        (lambda: nn.Sequential(Own(4, 4)), "its layer 0 is a Own"),
        (lambda: nn.Sequential(nn.Softmax(1)), "Softmax"),
        (lambda: nn.Sequential(nn.Flatten(2)), "Flatten"),
        (lambda: nn.Sequential(nn.Conv2d(4, 4, 3, groups=2)), "groups"),
        (lambda: nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, padding_mode="reflect")), "reflect"),
        (lambda: nn.Sequential(nn.Conv2d(1, 4, 3, padding="same")), "padding by name"),
        (lambda: nn.Sequential(nn.MaxPool2d(3, padding=1)), "with padding"),
        (lambda: nn.Sequential(nn.Linear(4, 4).double()), "not in float32"),
        (shared, "uses a layer twice"),
        (frozen, "frozen"),
    ],
)
def test_what_has_no_counterpart_is_named(make: Callable[[], nn.Module], told: str) -> None:
    with pytest.raises(Unfit, match=told):
        translated(make())


@pytest.mark.parametrize(
    ("name", "cannot"),
    [("mlp", set()), ("cnn-small", set()), ("cnn-medium", TRANSLATED), ("resnet34", TRANSLATED)],
)
def test_images_go_through_the_peers_of_torch_and_plain_sequences_through_all(name: str, cannot: set[str]) -> None:
    work = workload(name, {})
    found = peers_unfit(work, work.model())
    assert set(found) == cannot
    assert all(reason.startswith(f"the peer {peer} cannot train it: its ") for peer, reason in found.items())


class OwnLoss(Workload):
    """Judged in another way than by cross-entropy."""

    def model(self) -> nn.Module:
        return nn.Sequential(nn.Linear(2, 2))

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        return (model,)

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square().sum()


def test_a_loss_of_its_own_goes_through_none() -> None:
    found = peers_unfit(OwnLoss(), OwnLoss().model())
    assert set(found) == {"plain", "lightning", "accelerate", "keras", "jax"}
    assert "a loss of its own" in found["plain"]
