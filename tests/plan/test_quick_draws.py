"""Weights that are drawn in part are of the kind that was asked for."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from escala.plan import quick_draws
from escala.plan.model_facts import model_of
from escala.plan.quick_draws import QuickDraws
from escala.workloads import workload
from escala.workloads.base import Workload


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_draws, "BLOCK", 1000)


def test_what_is_large_repeats_a_block_of_its_own_distribution() -> None:
    torch.manual_seed(0)
    with QuickDraws():
        normal = nn.init.normal_(torch.empty(50, 70), mean=3.0, std=0.5)
        uniform = nn.init.uniform_(torch.empty(3100), -2.0, -1.0)
    row = normal.flatten()
    assert torch.equal(row[:1000], row[1000:2000])
    assert torch.equal(row[:500], row[3000:])
    assert len(row[:1000].unique()) > 990
    assert row.mean() == pytest.approx(3.0, abs=0.1)
    assert row.std() == pytest.approx(0.5, abs=0.1)
    assert torch.equal(uniform[:100], uniform[3000:])
    assert -2.0 <= uniform.min() < -1.9
    assert -1.1 < uniform.max() <= -1.0


def test_what_is_small_or_lies_apart_is_drawn_as_ever() -> None:
    torch.manual_seed(1)
    plain = [torch.empty(1000).normal_(), torch.empty(80, 40).t()[::2].uniform_()]
    torch.manual_seed(1)
    with QuickDraws():
        same = [torch.empty(1000).normal_(), torch.empty(80, 40).t()[::2].uniform_()]
    for one, other in zip(plain, same, strict=True):
        assert torch.equal(one, other)


def test_a_network_has_all_its_weights() -> None:
    with QuickDraws():
        made = nn.Sequential(nn.Linear(60, 50), nn.Embedding(77, 33))
    for weight in made.parameters():
        assert weight.isfinite().all()
        assert weight.detach().count_nonzero() == weight.numel()


def test_a_network_that_cannot_take_repeated_numbers_is_drawn_as_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    work, made = workload("mlp", {}), list[torch.Tensor]()

    def model(_: Workload) -> nn.Module:
        made.append(torch.empty(60, 50).normal_())
        if made[-1].unique().numel() < 2900:
            raise RuntimeError("it is singular")
        return nn.Linear(2, 2)

    monkeypatch.setattr(type(work), "model", model)
    assert isinstance(model_of(work), nn.Linear)
    torch.manual_seed(0)
    assert torch.equal(made[1], torch.empty(60, 50).normal_())
    assert len(made) == 2
