"""Networks that cannot be cut as a strategy would have it, told before anything starts."""

from __future__ import annotations

import sys
import types

import pytest
import torch
from torch import Tensor, nn

from escala.data.base import Description
from escala.plan import model_facts as counting
from escala.plan.model_facts import model_facts, model_of
from escala.plan.preflight import Facts
from escala.plan.seated import seated
from escala.terms.experiment import ExecutionSpec, TrainSpec, WorkloadSpec
from escala.terms.host import Host
from escala.terms.record import DataUse
from escala.terms.trial import StrategyUse
from escala.workloads import workload
from escala.workloads.user import OwnModel

HOST = Host("c", 4, 1, "s", ())
USE = DataUse("d", "generated", "w", "0", {"train": 100}, 10)


def unfit(use: StrategyUse, blocks: int | None, uncut: str | None = None) -> str | None:
    facts = Facts(WorkloadSpec("mlp"), "d", USE, 1, 1, (), blocks=blocks, uncut=uncut)
    return seated(use, None, TrainSpec(), ExecutionSpec(), facts, HOST)[1]


@pytest.mark.parametrize(
    "use",
    [StrategyUse("pipeline", 3, "cpu"), StrategyUse("layers", 3, "cpu", simulate=True)],
    ids=lambda use: use.name,
)
def test_a_network_must_have_a_block_for_each_stage(use: StrategyUse) -> None:
    assert unfit(use, 3) is None
    assert unfit(use, None) is None
    assert unfit(use, 2) == "3 stages of a network with 2 blocks; 2 is the most"
    assert unfit(use, 0, "it cannot be cut") == "it cannot be cut"


def test_strategies_that_cut_nothing_do_not_mind() -> None:
    assert unfit(StrategyUse("ddp", 3, "cpu"), 0, "it cannot be cut") is None


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Linear(784, 8), nn.Linear(8, 10)

    def forward(self, images: Tensor) -> Tensor:
        outputs: Tensor = self.narrow(torch.relu(self.wide(images.flatten(1))))
        return outputs


class Listed(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.flat, self.bent = nn.Flatten(), nn.ReLU()

    def blocks(self) -> list[nn.Module]:
        return [self.flat, self.wide, self.bent, self.narrow]


@pytest.mark.parametrize(
    ("factory", "blocks", "told"),
    [
        (Plain, 0, "a Plain cannot be cut: make it an nn.Sequential, or give it"),
        (Listed, 4, None),
        (lambda: nn.Sequential(nn.Flatten(), nn.Linear(784, 10)), 2, None),
    ],
)
def test_a_persons_own_network_is_looked_at(
    factory: object, blocks: int, told: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = types.ModuleType("persons_own")
    module.factory = factory  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "persons_own", module)
    rows = Description("d", "generated", "w", "", (28, 28), "uint8", 10)
    work = workload("persons_own:factory", {})
    found = model_facts(work, rows, model_of(work))
    assert found.blocks == blocks
    assert found.uncut is None if told is None else told in str(found.uncut)


def test_a_large_network_that_looks_at_numbers_is_passed_through_for_real(monkeypatch: pytest.MonkeyPatch) -> None:
    class Looking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.line = nn.Linear(784, 10)

        def forward(self, rows: Tensor) -> Tensor:
            found: Tensor = self.line(rows.flatten(1))
            return found if found.sum().item() else 2 * found

    monkeypatch.setattr(counting, "LARGE", 0)
    work, rows = OwnModel(Looking, ()), Description("d", "generated", "w", "", (28, 28), "uint8", 10)
    found = model_facts(work, rows, Looking())
    assert (found.unused, found.flops_per_sample) == ((), 2 * 2 * 784 * 10)
