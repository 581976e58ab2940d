"""Which parts of a network are gathered together when its weights are sharded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from escala.strategies.units import units
from escala.workloads import workload
from escala.workloads.base import Workload
from escala.workloads.user import OwnModel


class Body(nn.Module):
    """Eight equal layers in a list, which is never called itself, behind a small layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(1, 1)
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(8))

    def forward(self, rows: Tensor) -> Tensor:
        for layer in self.layers:
            rows = layer(rows)
        return rows


class Tied(nn.Module):
    """The head's weight is the embedding's."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(32, 16)
        self.body = nn.Sequential(nn.Linear(16, 16), nn.Linear(16, 16))
        self.head = nn.Linear(16, 32, bias=False)
        self.head.weight = self.embedding.weight


@dataclass(frozen=True)
class Blocked(Workload):
    """A person's workload that says where it may be wrapped."""

    data: ClassVar[tuple[str, ...]] = ()

    def model(self) -> nn.Module:
        return nn.Sequential(Body(), Body())

    def blocks(self, model: nn.Module) -> tuple[nn.Module, ...]:
        return tuple(model.children())


def test_a_network_without_blocks_is_cut_by_size() -> None:
    model = nn.Sequential(Body(), nn.ReLU())
    # The small layer stays with the rest.
    assert units(OwnModel(Body, ()), model) == tuple(model[0].layers)


def test_blocks_are_taken_as_they_are() -> None:
    work = Blocked()
    model = work.model()
    assert units(work, model) == tuple(model.children())


def test_what_shares_a_parameter_with_the_rest_stays_with_it() -> None:
    model = Tied()
    found = units(OwnModel(Tied, ()), model)
    assert found == tuple(model.body)
    assert model.head not in found


def test_layers_of_pytorch_stay_whole() -> None:
    """Attention reaches into its last layer's weight without calling it."""
    attention = nn.MultiheadAttention(32, 2)
    encoder = nn.TransformerEncoderLayer(32, 2, dim_feedforward=64)
    model = nn.Sequential(attention, encoder)
    assert units(OwnModel(nn.Identity, ()), model) == (attention, encoder)


def test_a_network_that_is_one_block_is_the_roots() -> None:
    layer = nn.Linear(4, 4)
    assert units(OwnModel(nn.Identity, ()), layer) == ()


def test_every_workload_of_the_table_has_units_that_hold_most_of_it() -> None:
    for name in ("mlp", "cnn-small", "resnet18", "transformer-small"):
        work = workload(name, {})
        model = work.model()
        found = units(work, model)
        held = sum(weight.numel() for part in found for weight in part.parameters())
        assert held > 0.9 * sum(weight.numel() for weight in model.parameters()), name
        assert len(set(found)) == len(found)
